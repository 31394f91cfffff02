/** Creates a schedule. */
import type { CreateScheduleInput, Schedule } from '@rivulet/client'
import { useClient } from '@rivulet/client/react'
import { useAgents } from '../agents/use-agents.ts'
import { Field, fieldLook } from '../shell/forms/field.tsx'
import { FormDialog } from '../shell/forms/form-dialog.tsx'
import { bodyOf, emptyDraft } from '../tasks/task-draft.ts'

const overlaps: Record<Schedule['overlap'], string> = {
  skip: 'leave this run out',
  queue: 'create it all the same',
  interrupt: 'cancel the run before',
}

export function NewScheduleDialog({ onClose, onDone }: { onClose: () => void; onDone: () => void }) {
  const client = useClient()
  const { agents } = useAgents()
  return (
    <FormDialog title="New schedule" action="Create" onClose={onClose} onSubmit={create}>
      <Field label="Agent">
        <select data-first name="agent" className={fieldLook}>
          {agents.map(({ name }) => (
            <option key={name}>{name}</option>
          ))}
        </select>
      </Field>
      <div className="grid gap-4 sm:grid-cols-2">
        <Field label="Cron line" note="Minute, hour, day of the month, month, day of the week">
          <input name="cron" required placeholder="0 9 * * 1-5" className={`${fieldLook} font-mono text-[13px]`} />
        </Field>
        <Field label="Time zone">
          <input name="timezone" defaultValue={Intl.DateTimeFormat().resolvedOptions().timeZone} className={fieldLook} />
        </Field>
      </div>
      <Field label="Input">
        <textarea name="input" rows={3} className={fieldLook} />
      </Field>
      <Field label="Parameters, as JSON">
        <textarea name="params" rows={2} className={`${fieldLook} font-mono text-[13px]`} />
      </Field>
      <div className="grid gap-4 sm:grid-cols-2">
        <Field label="Name" note="With a name, each run is the next turn of one task.">
          <input name="name" className={fieldLook} />
        </Field>
        <Field label="If the run before has not ended">
          <select name="overlap" className={fieldLook}>
            {Object.entries(overlaps).map(([value, words]) => (
              <option key={value} value={value}>
                {words}
              </option>
            ))}
          </select>
        </Field>
      </div>
    </FormDialog>
  )

  async function create(text: (name: string) => string): Promise<void> {
    const task = bodyOf({ ...emptyDraft, agent: text('agent'), input: text('input'), params: text('params'), name: text('name') })
    const when = { cron: text('cron'), timezone: text('timezone') || 'UTC', overlap: text('overlap') as Schedule['overlap'] }
    await client.schedules.create({ ...task, ...when } as CreateScheduleInput)
    onDone()
    onClose()
  }
}
