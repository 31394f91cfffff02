/** Gives an agent something to do, and goes to watch it. */
import type { Agent, ContentOf } from '@rivulet/client'
import { useClient } from '@rivulet/client/react'
import { type KeyboardEvent, useMemo, useState } from 'react'
import { AttachButton } from '../files/attach-button.tsx'
import { UploadList } from '../files/upload-list.tsx'
import { useDroppedFiles } from '../files/use-dropped-files.ts'
import { useUploads } from '../files/use-uploads.ts'
import { Field, fieldLook } from '../shell/forms/field.tsx'
import { FormDialog } from '../shell/forms/form-dialog.tsx'
import { useStored } from '../shell/hooks/use-stored.ts'
import { navigate, taskPath } from '../shell/route.ts'
import { canDraw, fieldsOf, undrawnIn } from '../waits/form-fields.ts'
import { UndrawnNote, WaitFields } from '../waits/wait-fields.tsx'
import { RecentInputs } from './recent-inputs.tsx'
import { bodyOf, emptyDraft, shownFields, type TaskDraft, valueIn } from './task-draft.ts'

const noFaults: ReadonlyMap<string, string> = new Map()
const numbers = [
  { field: 'tokens', label: 'Budget, in tokens', step: 1 },
  { field: 'usd', label: 'Budget, in US dollars', step: 'any' },
  { field: 'delay', label: 'Starts after, in seconds', step: 'any' },
] as const

type NewTaskProps = {
  agents: readonly Agent[]
  /** What the form begins with, in place of what was typed and not sent. */
  given?: Partial<TaskDraft>
  files?: readonly ContentOf<'media'>[]
  onClose: () => void
}

export function NewTaskDialog({ agents, given, files: givenFiles = [], onClose }: NewTaskProps) {
  const client = useClient()
  const preferred = agents.find(({ name }) => name === 'assistant') ?? agents.find(({ workers }) => workers > 0) ?? agents[0]
  const [stored, store] = useStored('draft.new')
  const [edited, setEdited] = useState(given)
  const draft = useMemo(() => ({ ...emptyDraft, ...(edited ?? draftIn(stored)) }), [stored, edited])
  /** Not a part of the draft, which the browser stores. */
  const [secrets, setSecrets] = useState('')
  const uploads = useUploads(givenFiles)
  const { isOver, onPaste } = useDroppedFiles(uploads.add, 'dialog')
  const agentName = draft.agent || preferred?.name || ''
  const agent = agents.find(({ name }) => name === agentName)
  const schema = canDraw(agent?.params) ? agent.params : null
  const change = (fields: Partial<TaskDraft>) => {
    if (edited) setEdited({ ...draft, ...fields })
    else store(JSON.stringify({ ...draft, ...fields }))
  }

  return (
    <FormDialog
      title="New task"
      action="Start"
      canSubmit={agentName !== '' && !uploads.isSending}
      onClose={onClose}
      onSubmit={start}
      onPaste={onPaste}
      className={isOver ? 'bg-accent-well' : ''}
    >
      <Field label="Agent" note={agent && noteOf(agent)}>
        <select value={agentName} onChange={event => changeAgent(event.target.value)} className={fieldLook}>
          {agents.map(({ name }) => (
            <option key={name}>{name}</option>
          ))}
        </select>
      </Field>
      <Field label={draft.isJson ? 'Input, as JSON' : 'Input'}>
        <textarea
          rows={4}
          data-first
          value={draft.input}
          onKeyDown={hear}
          onChange={event => change({ input: event.target.value })}
          placeholder={draft.isJson ? '{ "any": "JSON" }' : 'What time is it, and what is 12 * (3 + 4)?'}
          className={`${fieldLook} placeholder:text-faint ${draft.isJson ? 'font-mono text-[13px]' : ''}`}
        />
      </Field>
      <div className="-mt-2 flex items-center justify-between">
        <label className="flex items-center gap-2 text-[13px] text-soft">
          <input
            type="checkbox"
            checked={draft.isJson}
            onChange={event => change({ isJson: event.target.checked })}
            className="accent-accent"
          />
          The input is JSON
        </label>
        <AttachButton onFiles={uploads.add} />
      </div>
      {agentName && <RecentInputs key={agentName} agent={agentName} onChoose={beginWith} />}
      <div className="-mx-3">
        <UploadList uploads={uploads} />
      </div>
      {schema && (
        <section aria-label="Parameters" className="space-y-4">
          <WaitFields
            fields={fieldsOf(schema)}
            faults={noFaults}
            draft={shownFields(schema, draft)}
            onChange={(name, value) => change({ fields: { ...shownFields(schema, draft), [name]: value } })}
          />
          <UndrawnNote names={undrawnIn(schema, valueIn(draft.params))} />
        </section>
      )}
      <details className="text-[13px]" open={agentName === 'scripted' || undefined}>
        <summary className="text-soft">
          {schema ? 'Secrets, name, budget, delay and metadata' : 'Parameters, secrets, name, budget, delay and metadata'}
        </summary>
        <div className="mt-3 space-y-4">
          {!schema && (
            <Field label="Parameters, as JSON">
              <textarea
                rows={3}
                value={draft.params}
                onChange={event => change({ params: event.target.value })}
                className={`${fieldLook} font-mono text-[13px]`}
              />
            </Field>
          )}
          <Field label="Secrets" note="NAME=value, one a line. The platform encrypts them, and gives them to the agent alone.">
            <textarea
              rows={2}
              value={secrets}
              autoComplete="off"
              spellCheck={false}
              onChange={event => setSecrets(event.target.value)}
              className={`${fieldLook} font-mono text-[13px] [-webkit-text-security:disc]`}
            />
          </Field>
          <Field label="Name" note="A task of this agent with this name is continued, not created anew.">
            <input value={draft.name} onChange={event => change({ name: event.target.value })} className={fieldLook} />
          </Field>
          <div className="grid gap-4 sm:grid-cols-3">
            {numbers.map(({ field, label, step }) => (
              <Field key={field} label={label}>
                <input
                  type="number"
                  min={0}
                  step={step}
                  value={draft[field]}
                  onChange={event => change({ [field]: event.target.value })}
                  className={fieldLook}
                />
              </Field>
            ))}
          </div>
          <Field label="Metadata" note="key=value, one a line. Lists of tasks can be filtered by it.">
            <textarea
              rows={2}
              value={draft.metadata}
              onChange={event => change({ metadata: event.target.value })}
              className={`${fieldLook} font-mono text-[13px]`}
            />
          </Field>
        </div>
      </details>
    </FormDialog>
  )

  function beginWith(given: Partial<TaskDraft>, files: readonly ContentOf<'media'>[]): void {
    change({ ...given, fields: null })
    uploads.take()
    uploads.putBack(files)
  }

  /** Params that were typed in the form of an agent belong to that agent alone. */
  function changeAgent(name: string): void {
    change({ agent: name, fields: null, ...(schema && { params: '' }) })
  }

  function hear(event: KeyboardEvent<HTMLTextAreaElement>): void {
    if (event.key === 'Enter' && (event.metaKey || event.ctrlKey)) event.currentTarget.form?.requestSubmit()
  }

  async function start(): Promise<void> {
    const files = uploads.take()
    try {
      const body = bodyOf({ ...draft, agent: agentName }, agent?.params, secrets)
      const inputs = [...files, ...(body.input === undefined ? [] : [body.input].flat())]
      const { task } = await client.tasks.create({ ...body, start: true, ...(files.length > 0 && { input: inputs }) })
      if (!edited) store('')
      navigate(taskPath(task.id))
      onClose()
    } catch (reason) {
      uploads.putBack(files)
      throw reason
    }
  }
}

function draftIn(stored: string): Partial<TaskDraft> {
  try {
    return JSON.parse(stored)
  } catch {
    return {}
  }
}

function noteOf({ description, workers }: Agent): string {
  return `${description ? `${description}. ` : ''}${workers > 0 ? '' : 'No worker is running now; the task waits for one.'}`
}
