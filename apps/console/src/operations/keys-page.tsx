/** The keys, for a key with the scope `admin`: which there are, a new one, and the end of one. A secret is shown once. */
import type { Key, NewKey, Scope } from '@rivulet/client'
import { useClient } from '@rivulet/client/react'
import { useState } from 'react'
import { Button } from '../shell/elements/button.tsx'
import { ConfirmDialog } from '../shell/elements/confirm-dialog.tsx'
import { PlusIcon } from '../shell/elements/icons.tsx'
import { PageFrame, Table } from '../shell/elements/page-frame.tsx'
import { Field, FormError, fieldLook } from '../shell/forms/field.tsx'
import { FormDialog } from '../shell/forms/form-dialog.tsx'
import { SecretDialog } from '../shell/forms/secret-dialog.tsx'
import { useDeed } from '../shell/hooks/use-deed.ts'
import { useNow } from '../shell/hooks/use-now.ts'
import { age } from '../shell/human-units.ts'
import { usePolled } from '../shell/queries.ts'

const scopes: Scope[] = ['tasks:read', 'tasks:write', 'admin', 'metrics', 'worker']

export function KeysPage() {
  const client = useClient()
  const state = usePolled(['keys'], signal => allKeys(signal), 10_000)
  const [isCreating, setCreating] = useState(false)
  const [doomed, setDoomed] = useState<Key | null>(null)
  const { error, attempt } = useDeed(state.refresh)
  const now = useNow(10_000)
  const keys = state.value ?? []
  return (
    <PageFrame
      title="Keys"
      state={state}
      beside={
        <Button kind="primary" onClick={() => setCreating(true)}>
          <PlusIcon />
          New key
        </Button>
      }
    >
      <FormError error={error} />
      {state.value && (
        <Table
          caption="Keys"
          columns={['Name', 'Tenant', 'Scopes', 'State', 'Last used', 'Actions']}
          empty={keys.length === 0 ? 'There are no keys but those of the environment.' : null}
        >
          {keys.map(key => (
            <tr key={key.id} className={endOf(key, now) ? 'text-faint' : ''}>
              <td>
                {key.name || 'without a name'}
                <span className="block font-mono text-xs text-faint">{key.id}</span>
              </td>
              <td>{key.allTenants ? 'all' : key.tenant}</td>
              <td className="text-soft">
                {key.scopes.join(', ')}
                {key.agents && <span className="block text-xs">only {key.agents.join(', ')}</span>}
              </td>
              <td className="whitespace-nowrap">
                {endOf(key, now) ?? (key.expiresAt ? `until ${new Date(key.expiresAt).toLocaleDateString('en-GB')}` : 'valid')}
              </td>
              <td className="whitespace-nowrap text-soft">{key.lastUsedAt ? age(now - Date.parse(key.lastUsedAt)) : 'never'}</td>
              <td>
                {!endOf(key, now) && (
                  <Button kind="quiet" aria-label={`Revoke ${key.name || key.id}`} onClick={() => setDoomed(key)}>
                    Revoke
                  </Button>
                )}
              </td>
            </tr>
          ))}
        </Table>
      )}
      {isCreating && (
        <NewKeyDialog
          onClose={() => {
            setCreating(false)
            state.refresh()
          }}
        />
      )}
      {doomed && (
        <ConfirmDialog
          title={`Revoke ${doomed.name || doomed.id}?`}
          action="Revoke"
          onClose={() => setDoomed(null)}
          onConfirm={() => attempt(() => client.keys.revoke(doomed.id))}
        >
          Every program that uses this key is refused within 30 s. This cannot be undone.
        </ConfirmDialog>
      )}
    </PageFrame>
  )

  async function allKeys(signal: AbortSignal): Promise<Key[]> {
    const found: Key[] = []
    for (let cursor: string | null | undefined; cursor !== null; ) {
      const page: { data: readonly Key[]; nextCursor: string | null } = await client.keys.list(cursor ? { cursor } : {}, { signal })
      found.push(...page.data)
      cursor = page.nextCursor
    }
    return found.toReversed()
  }
}

function endOf({ revokedAt, expiresAt }: Key, now: number): string | null {
  if (revokedAt) return 'revoked'
  return expiresAt && Date.parse(expiresAt) < now ? 'expired' : null
}

function NewKeyDialog({ onClose }: { onClose: () => void }) {
  const client = useClient()
  const [made, setMade] = useState<NewKey | null>(null)
  if (made)
    return (
      <SecretDialog
        title="The new key"
        note="Copy it now: the server stores no secret, so no page can show it again."
        copy="Copy the key"
        secret={made.secret}
        onClose={onClose}
      />
    )
  return (
    <FormDialog title="New key" action="Create" onClose={onClose} onSubmit={create}>
      <Field label="Name">
        <input data-first name="name" maxLength={200} className={fieldLook} />
      </Field>
      <fieldset>
        <legend className="mb-1 font-medium">Scopes</legend>
        {scopes.map(scope => (
          <label key={scope} className="mr-4 inline-flex items-center gap-1.5">
            <input type="checkbox" name="scopes" value={scope} defaultChecked={scope.startsWith('tasks:')} className="accent-accent" />
            {scope}
          </label>
        ))}
      </fieldset>
      <Field label="Agents (all, unless you name some, separated by commas)">
        <input name="agents" className={fieldLook} />
      </Field>
    </FormDialog>
  )

  async function create(text: (name: string) => string, fields: FormData): Promise<void> {
    const granted = scopes.filter(scope => fields.getAll('scopes').includes(scope))
    if (granted.length === 0) throw new Error('Choose at least one scope')
    const agents = text('agents')
      .split(',')
      .map(name => name.trim())
      .filter(name => name !== '')
    setMade(await client.keys.create({ name: text('name'), scopes: granted, ...(agents.length > 0 && { agents }) }))
  }
}
