/** The keys, for a key with the scope `admin`: which there are, a new one, and the end of one. A secret is shown once. */
import type { Key, NewKey, Scope } from '@rivulet/client'
import { useClient } from '@rivulet/client/react'
import { type FormEvent, useState } from 'react'
import { Button } from '../shell/elements/button.tsx'
import { Dialog } from '../shell/elements/dialog.tsx'
import { PlusIcon } from '../shell/elements/icons.tsx'
import { PageFrame, Table } from '../shell/elements/page-frame.tsx'
import { Field, FormError, fieldLook } from '../shell/forms/field.tsx'
import { SecretBox } from '../shell/forms/secret-box.tsx'
import { useNow } from '../shell/hooks/use-now.ts'
import { age } from '../shell/human-units.ts'
import { textOf, usePolled } from '../shell/queries.ts'

const scopes: Scope[] = ['tasks:read', 'tasks:write', 'admin', 'worker']

export function KeysPage() {
  const client = useClient()
  const state = usePolled(['keys'], signal => allKeys(signal), 10_000)
  const [isCreating, setCreating] = useState(false)
  const [doomed, setDoomed] = useState<Key | null>(null)
  const [error, setError] = useState<string | null>(null)
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
              <td className="text-soft">{key.scopes.join(', ')}</td>
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
        <Dialog title={`Revoke ${doomed.name || doomed.id}?`} onClose={() => setDoomed(null)}>
          <p className="text-soft">Every program that uses this key is refused within 30 s. This cannot be undone.</p>
          {error && (
            <p role="alert" className="mt-2 text-bad">
              {error}
            </p>
          )}
          <div className="mt-4 flex justify-end gap-2">
            <Button onClick={() => setDoomed(null)}>Back</Button>
            <Button data-first kind="danger" onClick={() => void revoke(doomed)}>
              Revoke
            </Button>
          </div>
        </Dialog>
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

  async function revoke({ id }: Key): Promise<void> {
    setError(null)
    try {
      await client.keys.revoke(id)
      setDoomed(null)
      state.refresh()
    } catch (reason) {
      setError(textOf(reason))
    }
  }
}

function endOf({ revokedAt, expiresAt }: Key, now: number): string | null {
  if (revokedAt) return 'revoked'
  return expiresAt && Date.parse(expiresAt) < now ? 'expired' : null
}

function NewKeyDialog({ onClose }: { onClose: () => void }) {
  const client = useClient()
  const [name, setName] = useState('')
  const [granted, setGranted] = useState<readonly Scope[]>(['tasks:read', 'tasks:write'])
  const [made, setMade] = useState<NewKey | null>(null)
  const [error, setError] = useState<string | null>(null)
  if (made)
    return (
      <Dialog title="The new key" onClose={onClose}>
        <p className="text-soft">Copy it now: the server stores no secret, so no page can show it again.</p>
        <SecretBox label="Copy the key" secret={made.secret} />
        <div className="mt-4 flex justify-end">
          <Button kind="primary" onClick={onClose}>
            Done
          </Button>
        </div>
      </Dialog>
    )
  return (
    <Dialog title="New key" onClose={onClose}>
      <form onSubmit={submit} className="space-y-4">
        <Field label="Name">
          <input data-first value={name} maxLength={200} onChange={event => setName(event.target.value)} className={fieldLook} />
        </Field>
        <fieldset>
          <legend className="mb-1 font-medium">Scopes</legend>
          {scopes.map(scope => (
            <label key={scope} className="mr-4 inline-flex items-center gap-1.5">
              <input
                type="checkbox"
                checked={granted.includes(scope)}
                onChange={event => setGranted(event.target.checked ? [...granted, scope] : granted.filter(known => known !== scope))}
                className="accent-accent"
              />
              {scope}
            </label>
          ))}
        </fieldset>
        <FormError error={error} />
        <div className="flex justify-end gap-2">
          <Button onClick={onClose}>Cancel</Button>
          <Button type="submit" kind="primary" disabled={granted.length === 0}>
            Create
          </Button>
        </div>
      </form>
    </Dialog>
  )

  async function submit(event: FormEvent): Promise<void> {
    event.preventDefault()
    setError(null)
    try {
      setMade(await client.keys.create({ name, scopes: [...granted] }))
    } catch (reason) {
      setError(textOf(reason))
    }
  }
}
