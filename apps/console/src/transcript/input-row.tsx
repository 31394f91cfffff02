/** An input of the user. While its turn is part of the conversation, it can be edited and sent again in place of that turn and all later ones. */
import type { Content, Message } from '@rivulet/client'
import { type FormEvent, type KeyboardEvent, useEffect, useRef, useState } from 'react'
import { Button } from '../shell/elements/button.tsx'
import { EditIcon } from '../shell/elements/icons.tsx'
import { FormError } from '../shell/forms/field.tsx'
import { textOf } from '../shell/queries.ts'
import { MessageRow } from './message-row.tsx'
import type { TurnActs } from './turn-acts.ts'

export function InputRow({ message, acts }: { message: Message; acts: TurnActs | null }) {
  const [isEditing, setEditing] = useState(false)
  const words = editableIn(message.content)
  if (!acts || words === null) return <MessageRow message={message} />
  if (isEditing) return <InputForm words={words} onSend={send} onClose={() => setEditing(false)} />
  return (
    <div className="group flex items-center justify-end gap-1 [&>article]:ml-0">
      <Button
        kind="quiet"
        aria-label="Edit this input"
        title="Edit this input"
        onClick={() => setEditing(true)}
        className="px-2 opacity-0 group-hover:opacity-100 focus-visible:opacity-100 [@media(hover:none)]:opacity-100"
      >
        <EditIcon />
      </Button>
      <MessageRow message={message} />
    </div>
  )

  async function send(text: string): Promise<void> {
    await acts?.resend(message, editedFrom(message.content, text))
    setEditing(false)
  }
}

type InputFormProps = { words: string; onSend(text: string): Promise<void>; onClose(): void }

function InputForm({ words, onSend, onClose }: InputFormProps) {
  const [text, setText] = useState(words)
  const [error, setError] = useState<string | null>(null)
  const [isSending, setSending] = useState(false)
  const field = useRef<HTMLTextAreaElement>(null)
  useEffect(() => field.current?.focus(), [])
  return (
    <form
      onSubmit={submit}
      aria-label="Edit the input"
      className="ml-auto w-full max-w-[85%] rounded-2xl border border-line-strong bg-panel p-2"
    >
      <textarea
        ref={field}
        aria-label="Edited input"
        dir="auto"
        rows={Math.min(12, Math.max(2, text.split('\n').length))}
        value={text}
        onChange={event => setText(event.target.value)}
        onKeyDown={hear}
        className="block w-full resize-y bg-transparent px-2 py-1 text-[15px] outline-none"
      />
      <FormError error={error} />
      <div className="flex flex-wrap items-center justify-end gap-2">
        <span className="grow px-2 text-[13px] text-soft">This turn and all later ones are discarded.</span>
        <Button onClick={onClose}>Cancel</Button>
        <Button type="submit" kind="primary" disabled={isSending || text.trim() === ''}>
          Submit
        </Button>
      </div>
    </form>
  )

  function hear(event: KeyboardEvent<HTMLTextAreaElement>): void {
    if (event.key === 'Escape') onClose()
    if (event.key === 'Enter' && (event.metaKey || event.ctrlKey)) event.currentTarget.form?.requestSubmit()
  }

  async function submit(event: FormEvent): Promise<void> {
    event.preventDefault()
    setError(null)
    setSending(true)
    try {
      await onSend(text)
    } catch (reason) {
      setError(textOf(reason))
      setSending(false)
    }
  }
}

/** Null for what a person cannot write: files, pictures. */
function editableIn(content: Content): string | null {
  if (content.type === 'text') return content.text
  return content.type === 'data' ? JSON.stringify(content.data, null, 2) : null
}

/** Throws for malformed JSON. */
function editedFrom(content: Content, text: string): Content {
  return content.type === 'text' ? { ...content, text } : { type: 'data', data: JSON.parse(text) }
}
