/** Creates a webhook. Its secret is for the caller to show, once. */
import type { FeedEntryType } from '@rivulet/client'
import { useClient } from '@rivulet/client/react'
import { type FormEvent, useState } from 'react'
import { useAgents } from '../agents/use-agents.ts'
import { Button } from '../shell/elements/button.tsx'
import { Dialog } from '../shell/elements/dialog.tsx'
import { Field, FormError, fieldLook } from '../shell/forms/field.tsx'
import { textOf } from '../shell/queries.ts'

const types: readonly FeedEntryType[] = [
  'task.created',
  'turn.queued',
  'turn.started',
  'turn.waiting',
  'turn.resumed',
  'turn.finished',
  'task.deleted',
]

export function NewWebhookDialog({ onClose, onDone }: { onClose: () => void; onDone: (secret: string) => void }) {
  const client = useClient()
  const { agents } = useAgents()
  const [error, setError] = useState<string | null>(null)
  return (
    <Dialog title="New webhook" onClose={onClose}>
      <form onSubmit={submit} className="space-y-4">
        <Field label="Address">
          <input data-first name="url" type="url" required placeholder="https://example.com/rivulet" className={fieldLook} />
        </Field>
        <fieldset>
          <legend className="mb-1 font-medium">Events</legend>
          {types.map(type => (
            <label key={type} className="mr-4 inline-flex items-center gap-1.5">
              <input type="checkbox" name="events" value={type} defaultChecked={type === 'turn.finished'} className="accent-accent" />
              {type}
            </label>
          ))}
        </fieldset>
        <Field label="Agent">
          <select name="agent" className={fieldLook}>
            <option value="">all agents</option>
            {agents.map(({ name }) => (
              <option key={name}>{name}</option>
            ))}
          </select>
        </Field>
        <FormError error={error} />
        <div className="flex justify-end gap-2">
          <Button onClick={onClose}>Cancel</Button>
          <Button type="submit" kind="primary">
            Create
          </Button>
        </div>
      </form>
    </Dialog>
  )

  async function submit(event: FormEvent<HTMLFormElement>): Promise<void> {
    event.preventDefault()
    const fields = new FormData(event.currentTarget)
    const agent = String(fields.get('agent') ?? '')
    setError(null)
    try {
      const events = types.filter(type => fields.getAll('events').includes(type))
      const { secret } = await client.webhooks.create({ url: String(fields.get('url')), events, ...(agent && { agent }) })
      onDone(secret)
    } catch (reason) {
      setError(textOf(reason))
    }
  }
}
