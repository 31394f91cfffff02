/** Creates a webhook. Its secret is for the caller to show, once. */
import type { FeedEntryType } from '@rivulet/client'
import { useClient } from '@rivulet/client/react'
import { useAgents } from '../agents/use-agents.ts'
import { Field, fieldLook } from '../shell/forms/field.tsx'
import { FormDialog } from '../shell/forms/form-dialog.tsx'

/** Whether a type is chosen at first. The table is complete, so that the compiler finds a type that the form does not offer. */
const isChosenAtFirst: Record<FeedEntryType, boolean> = {
  'task.created': false,
  'turn.queued': false,
  'turn.started': false,
  'turn.waiting': false,
  'turn.resumed': false,
  'turn.finished': true,
  'task.deleted': false,
}
const types = Object.keys(isChosenAtFirst) as FeedEntryType[]

export function NewWebhookDialog({ onClose, onDone }: { onClose: () => void; onDone: (secret: string) => void }) {
  const client = useClient()
  const { agents } = useAgents()
  return (
    <FormDialog title="New webhook" action="Create" onClose={onClose} onSubmit={create}>
      <Field label="Address">
        <input data-first name="url" type="url" required placeholder="https://example.com/rivulet" className={fieldLook} />
      </Field>
      <fieldset>
        <legend className="mb-1 font-medium">Events</legend>
        {types.map(type => (
          <label key={type} className="mr-4 inline-flex items-center gap-1.5">
            <input type="checkbox" name="events" value={type} defaultChecked={isChosenAtFirst[type]} className="accent-accent" />
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
    </FormDialog>
  )

  async function create(text: (name: string) => string, fields: FormData): Promise<void> {
    const events = types.filter(type => fields.getAll('events').includes(type))
    const { secret } = await client.webhooks.create({ url: text('url'), events, ...(text('agent') && { agent: text('agent') }) })
    onDone(secret)
  }
}
