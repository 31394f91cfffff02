/**
 * Where one writes to a task. The field is free for the next message at once; what could not be sent comes back, before what was typed since, with the
 * reason. A draft survives leaving the page.
 */
import type { Content, Json, SendOptions } from '@rivulet/client'
import { type FormEvent, type KeyboardEvent, type Ref, useRef, useState } from 'react'
import { Button } from '../shell/elements/button.tsx'
import { SendIcon } from '../shell/elements/icons.tsx'
import { useStored } from '../shell/hooks/use-stored.ts'
import { textOf } from '../shell/queries.ts'

type IfBusy = NonNullable<SendOptions['ifBusy']>

export type ComposerProps = {
  task: string
  ref: Ref<HTMLTextAreaElement>
  isBusy: boolean
  isJson: boolean
  setJson(isJson: boolean): void
  send(input: string | Content, options: SendOptions): Promise<unknown>
}

export function Composer({ task, ref, isBusy, isJson, setJson, send }: ComposerProps) {
  const [text, setText] = useStored(`draft.${task}`)
  const latest = useRef(text)
  latest.current = text
  const [ifBusy, setIfBusy] = useState<IfBusy>('queue')
  const [error, setError] = useState<string | null>(null)
  const [sending, setSending] = useState(0)
  return (
    <form onSubmit={submit} className="border-t border-line px-3 py-3 sm:px-6">
      <div className="mx-auto max-w-3xl">
        {error && (
          <p role="alert" className="mb-2 text-[13px] text-bad">
            {error}
          </p>
        )}
        <div className="rounded-xl border border-line-strong bg-panel focus-within:border-accent">
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
          <div className="flex items-center gap-2 px-2 pb-2 text-[13px] text-soft">
            <label className="flex items-center gap-1.5 px-2">
              <input type="checkbox" checked={isJson} onChange={event => setJson(event.target.checked)} className="accent-accent" />
              JSON
            </label>
            {isBusy && (
              <label className="flex min-w-0 items-center gap-1">
                <span className="max-sm:sr-only">While the agent works:</span>
                <select
                  value={ifBusy}
                  onChange={event => setIfBusy(event.target.value as IfBusy)}
                  className="min-w-0 rounded-md border border-line bg-panel px-1.5 py-1"
                >
                  <option value="queue">queue the message</option>
                  <option value="interrupt">interrupt the agent</option>
                  <option value="reject">send only if idle</option>
                </select>
              </label>
            )}
            <span className="grow" />
            {sending > 0 && <span role="status">Sending …</span>}
            <Button type="submit" kind="primary" disabled={text.trim() === ''} aria-label="Send">
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
    if (text.trim() === '') return
    setError(null)
    try {
      const input = isJson ? { type: 'data' as const, data: JSON.parse(text) as Json } : text
      setText('')
      latest.current = ''
      setSending(count => count + 1)
      await send(input, { ifBusy }).finally(() => setSending(count => count - 1))
    } catch (reason) {
      setError(textOf(reason))
      // Malformed JSON never left the field.
      if (latest.current !== text) setText([text, latest.current].filter(Boolean).join('\n'))
    }
  }
}
