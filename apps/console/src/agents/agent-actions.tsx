/** What an admin does to an agent: pause it, limit it, forget one that has no workers any more. */
import type { Agent, AgentLimits } from '@rivulet/client'
import { useClient } from '@rivulet/client/react'
import { useState } from 'react'
import { MoreIcon } from '../shell/elements/icons.tsx'
import { Menu } from '../shell/elements/menu.tsx'
import { Field, FormError, fieldLook } from '../shell/forms/field.tsx'
import { FormDialog } from '../shell/forms/form-dialog.tsx'
import { useDeed } from '../shell/hooks/use-deed.ts'
import { queries } from '../shell/queries.ts'

type Numbers = 'concurrency' | 'perKey' | 'perMinute'

const names: Record<Numbers, string> = {
  concurrency: 'Turns at a time',
  perKey: 'Turns of one concurrency key at a time',
  perMinute: 'Starts of one concurrency key in a minute',
}

export function limitWords({ concurrency, perKey, perMinute }: AgentLimits): string {
  return [
    concurrency === undefined ? '' : `${concurrency} at a time`,
    perKey === undefined ? '' : `${perKey} of a key`,
    perMinute === undefined ? '' : `${perMinute} a minute of a key`,
  ]
    .filter(Boolean)
    .join(', ')
}

type AgentActionsProps = { agent: Agent; limits: readonly AgentLimits[]; onChange: () => void }

export function AgentActions({ agent: { name, paused, workers }, limits, onChange }: AgentActionsProps) {
  const client = useClient()
  const [isLimiting, setLimiting] = useState(false)
  const { error, attempt } = useDeed(() => queries.invalidateQueries({ queryKey: ['agents'] }))
  return (
    <div className="flex flex-col items-end">
      <Menu
        label={`Actions of ${name}`}
        items={[
          paused
            ? { name: 'Resume', choose: () => attempt(() => client.agents.resume(name)) }
            : { name: 'Pause', choose: () => attempt(() => client.agents.pause(name)) },
          { name: 'Limits', choose: () => setLimiting(true) },
          ...(workers === 0 ? [{ name: 'Forget', isDanger: true, choose: () => attempt(() => client.agents.remove(name)) }] : []),
        ]}
      >
        <MoreIcon />
      </Menu>
      <FormError error={error} />
      {isLimiting && (
        <LimitsDialog
          name={name}
          limits={limits.find(({ agent }) => agent === name)}
          onClose={() => {
            setLimiting(false)
            onChange()
          }}
        />
      )}
    </div>
  )
}

function LimitsDialog({ name, limits, onClose }: { name: string; limits: AgentLimits | undefined; onClose: () => void }) {
  const client = useClient()
  return (
    <FormDialog title={`Limits of ${name}`} action="Save" onClose={onClose} onSubmit={save}>
      <p className="text-soft">For the tasks of your tenant. An empty field means no limit; what is beyond a limit waits.</p>
      {(Object.keys(names) as Numbers[]).map((field, place) => (
        <Field key={field} label={names[field]}>
          <input
            data-first={place === 0 || undefined}
            name={field}
            type="number"
            min="1"
            max="1000000"
            defaultValue={limits?.[field] ?? ''}
            className={fieldLook}
          />
        </Field>
      ))}
    </FormDialog>
  )

  async function save(text: (name: string) => string): Promise<void> {
    const given = (Object.keys(names) as Numbers[]).flatMap(field => (text(field) ? [[field, Number(text(field))] as const] : []))
    // A limit that the request leaves out no longer holds, so the weights go along.
    await client.limits.set(name, { ...Object.fromEntries(given), ...(limits?.weights && { weights: limits.weights }) })
    onClose()
  }
}
