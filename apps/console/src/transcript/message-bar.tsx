/** A line below a message, for a person who points at it: its time and use, a copy, a link, and a fork after its turn. */
import type { Message } from '@rivulet/client'
import { CopyButton } from '../shell/elements/copy-button.tsx'
import { LinkIcon } from '../shell/elements/icons.tsx'
import { taskPath } from '../shell/route.ts'
import { contentText } from './content-text.ts'
import { factsOf } from './message-facts.ts'

type MessageBarProps = {
  message: Message
  /** The begin of the response that ends with it; null where that is not known. */
  begins: number | null
  task: string
  fork: ((turnNumber: number) => void) | null
}

export function MessageBar({ message, begins, task, fork }: MessageBarProps) {
  const { author, content, createdAt, index, status, turn } = message
  // It takes the room between two rows, from the first word on, so that nothing moves when it is shown.
  const room = '-mb-4 h-6'
  if (status === 'streaming') return <div className={room} />
  return (
    <fieldset
      aria-label="About this message"
      className={`${room} flex min-w-0 items-center gap-x-1 text-xs whitespace-nowrap text-soft opacity-0 group-focus-within:opacity-100 group-hover:opacity-100 print:hidden [@media(hover:none)]:opacity-100 ${author === 'user' ? 'justify-end' : ''}`}
    >
      <span className="mr-2 min-w-0 truncate tabular-nums" title={new Date(createdAt).toLocaleString('en-GB')}>
        {factsOf(message, begins).join(' · ')}
      </span>
      <CopyButton label="Copy this message" text={() => contentText(content)} />
      <CopyButton label="Link to this message" text={() => `${location.origin}${taskPath(task)}?message=${index}`} icon={<LinkIcon />} />
      {fork && (
        <button type="button" onClick={() => fork(turn)} className="rounded-md px-1.5 py-1 hover:bg-line hover:text-ink">
          Fork from here
        </button>
      )}
    </fieldset>
  )
}
