/** Where one writes to a task. What could not be sent stays, with the reason. */
import type { Content, Json, SendOptions } from '@rivulet/client'
import { type FormEvent, type KeyboardEvent, type Ref, useState } from 'react'
import { Button } from '../shell/elements/button.tsx'
import { SendIcon } from '../shell/elements/icons.tsx'

type IfBusy = NonNullable<SendOptions['ifBusy']>

export type ComposerProps = {
  ref: Ref<HTMLTextAreaElement>
  isBusy: boolean
  isJson: boolean
  setJson(isJson: boolean): void
  send(input: string | Content, options: SendOptions): Promise<unknown>
}

export function Composer({ ref, isBusy, isJson, setJson, send }: ComposerProps) {
  const [text, setText] = useState('')
  const [ifBusy, setIfBusy] = useState<IfBusy>('queue')
  const [error, setError] = useState<string | null>(null)
  const [isSending, setSending] = useState(false)
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
            <Button type="submit" kind="primary" disabled={text.trim() === '' || isSending} aria-label="Send">
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
    if (text.trim() === '' || isSending) return
    setSending(true)
    try {
      await send(isJson ? { type: 'data', data: JSON.parse(text) as Json } : text, { ifBusy })
      setText('')
      setError(null)
    } catch (reason) {
      setError(reason instanceof Error ? reason.message : String(reason))
    } finally {
      setSending(false)
    }
  }
}
