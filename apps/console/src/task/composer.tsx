/**
 * Where one writes to a task. The field is free for the next message at once; what could not be sent comes back, before what was typed since, with the
 * reason. A draft survives leaving the page; files that were attached do not.
 */
import type { Json, SendOptions, TaskInput } from '@rivulet/client'
import { type FormEvent, type KeyboardEvent, memo, type Ref, useRef, useState } from 'react'
import { AttachButton } from '../files/attach-button.tsx'
import { UploadList } from '../files/upload-list.tsx'
import { useDroppedFiles } from '../files/use-dropped-files.ts'
import { useUploads } from '../files/use-uploads.ts'
import { Button } from '../shell/elements/button.tsx'
import { SendIcon } from '../shell/elements/icons.tsx'
import { FormError } from '../shell/forms/field.tsx'
import { useStored } from '../shell/hooks/use-stored.ts'
import { textOf } from '../shell/queries.ts'

type IfBusy = NonNullable<SendOptions['ifBusy']>

const choices: [IfBusy, words: string, meaning: string][] = [
  ['queue', 'After this turn', 'The agent gets it when this turn has ended'],
  ['inject', 'Now', 'The running turn gets it'],
  ['merge', 'Together', 'It joins the input that is queued'],
  ['interrupt', 'Instead', 'The running turn is stopped'],
  ['reject', 'Only if idle', 'It is not sent while a turn runs'],
]

type ComposerProps = {
  task: string
  ref: Ref<HTMLTextAreaElement>
  isBusy: boolean
  isJson: boolean
  setJson(isJson: boolean): void
  send(input: TaskInput, options: SendOptions): Promise<unknown>
}

/** Drawn again only for itself: the page around it changes with each delta. */
export const Composer = memo(({ task, ref, isBusy, isJson, setJson, send }: ComposerProps) => {
  const [text, setText] = useStored(`draft.${task}`)
  const latest = useRef(text)
  latest.current = text
  const [params, setParams] = useStored(`draft-params.${task}`)
  const [hasParams, setHasParams] = useState(params !== '')
  const [ifBusy, setIfBusy] = useState<IfBusy>('queue')
  const [error, setError] = useState<string | null>(null)
  const [sending, setSending] = useState(0)
  const uploads = useUploads()
  const { isOver, onPaste } = useDroppedFiles(uploads.add, 'page')
  const isEmpty = text.trim() === '' && !uploads.list.some(({ state }) => state === 'stored')
  return (
    <form onSubmit={submit} className="border-t border-line px-3 py-3 sm:px-6">
      <div className="mx-auto max-w-3xl">
        <FormError error={error} />
        <div
          onPaste={onPaste}
          className={`rounded-xl border bg-panel focus-within:border-accent ${isOver ? 'border-accent bg-accent-well' : 'border-line-strong'}`}
        >
          <UploadList uploads={uploads} />
          <textarea
            ref={ref}
            aria-label="Message to the agent"
            dir="auto"
            placeholder={isJson ? '{ "any": "JSON" }' : 'Write to this task'}
            rows={Math.min(8, Math.max(1, text.split('\n').length))}
            value={text}
            onChange={event => setText(event.target.value)}
            onKeyDown={hear}
            className={`block w-full resize-none rounded-xl bg-transparent px-4 pt-3 pb-1 text-[15px] outline-none placeholder:text-faint ${isJson ? 'font-mono' : ''}`}
          />
          {hasParams && (
            <textarea
              aria-label="Parameters of this turn, as JSON"
              placeholder='Parameters, as JSON: { "any": "JSON" }'
              rows={2}
              value={params}
              onChange={event => setParams(event.target.value)}
              className="block w-full resize-y border-t border-line bg-transparent px-4 py-2 font-mono text-[13px] outline-none placeholder:text-faint"
            />
          )}
          <div className="flex flex-wrap items-center gap-x-2 gap-y-1 px-2 pb-2 text-[13px] text-soft">
            <AttachButton onFiles={uploads.add} />
            <Check label="JSON" isChecked={isJson} onChange={setJson} />
            <Check label="Params" isChecked={hasParams} onChange={setHasParams} />
            {isBusy && (
              <label className="flex min-w-0 items-center gap-1">
                <span className="max-sm:sr-only">While the agent works:</span>
                <select
                  value={ifBusy}
                  title={choices.find(([value]) => value === ifBusy)?.[2]}
                  onChange={event => setIfBusy(event.target.value as IfBusy)}
                  className="min-w-0 rounded-md border border-line bg-panel px-1.5 py-1"
                >
                  {choices.map(([value, words]) => (
                    <option key={value} value={value}>
                      {words}
                    </option>
                  ))}
                </select>
              </label>
            )}
            <span className="grow" />
            {sending > 0 && <span role="status">Sending …</span>}
            <Button type="submit" kind="primary" disabled={isEmpty || uploads.isSending} aria-label="Send">
              <SendIcon />
            </Button>
          </div>
        </div>
      </div>
    </form>
  )

  function hear(event: KeyboardEvent<HTMLTextAreaElement>): void {
    if (event.key === 'Escape') event.currentTarget.blur()
    if (event.key !== 'Enter' || event.shiftKey || event.nativeEvent.isComposing) return
    event.preventDefault()
    event.currentTarget.form?.requestSubmit()
  }

  async function submit(event: FormEvent): Promise<void> {
    event.preventDefault()
    if (isEmpty || uploads.isSending) return
    setError(null)
    try {
      // Malformed JSON never leaves its field.
      const data = isJson && text.trim() !== '' ? { type: 'data' as const, data: parsed('The message', text) } : null
      const own = hasParams && params.trim() !== '' ? { params: parsed('The parameters', params) } : {}
      const files = uploads.take()
      const words = data ?? (text.trim() === '' ? null : text)
      const input = [...files, ...(words === null ? [] : [words])]
      setText('')
      latest.current = ''
      setSending(count => count + 1)
      await send(input.length === 1 && input[0] !== undefined ? input[0] : input, { ifBusy, ...own })
        .catch((reason: unknown) => {
          uploads.putBack(files)
          setText([text, latest.current].filter(Boolean).join('\n'))
          throw reason
        })
        .finally(() => setSending(count => count - 1))
    } catch (reason) {
      setError(textOf(reason))
    }
  }
})

function parsed(what: string, text: string): Json {
  try {
    return JSON.parse(text)
  } catch (reason) {
    throw new Error(`${what}: ${textOf(reason)}`)
  }
}

function Check({ label, isChecked, onChange }: { label: string; isChecked: boolean; onChange: (isChecked: boolean) => void }) {
  return (
    <label className="flex items-center gap-1.5 px-1">
      <input type="checkbox" checked={isChecked} onChange={event => onChange(event.target.checked)} className="accent-accent" />
      {label}
    </label>
  )
}
