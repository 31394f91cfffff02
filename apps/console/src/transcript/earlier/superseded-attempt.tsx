/** What an earlier attempt said: it leaves before the reader's eyes, and a line stays behind it that brings it back. */
import { useEffect, useState } from 'react'
import { ChevronIcon } from '../../shell/elements/icons.tsx'
import { MessageRow } from '../message-row.tsx'
import type { Superseded } from './superseded.ts'

const leavingMs = 1_200

export function SupersededAttempt({ group: { attempt, messages } }: { group: Superseded }) {
  const [isLeaving, setLeaving] = useState(true)
  const [isOpen, setOpen] = useState(false)
  useEffect(() => {
    const timer = setTimeout(() => setLeaving(false), leavingMs)
    return () => clearTimeout(timer)
  }, [])
  const reason = messages.findLast(({ error }) => error)?.error?.message
  const isShown = isLeaving || isOpen
  return (
    <div className="rounded-lg border border-dashed border-line-strong px-3 py-2 text-[13px] text-soft">
      <button
        type="button"
        aria-expanded={isShown}
        onClick={() => setOpen(!isOpen)}
        className="inline-flex items-center gap-1 text-left hover:text-ink"
      >
        <span className={`transition-transform ${isShown ? 'rotate-90' : ''}`}>
          <ChevronIcon />
        </span>
        Attempt {attempt} did not finish{reason ? `: ${reason}` : ''}. What it said does not count.
      </button>
      {isShown && (
        <div className={`mt-2 space-y-3 line-through decoration-line-strong ${isLeaving ? 'leaving' : 'opacity-60'}`}>
          {messages.map(message => (
            <MessageRow key={message.index} message={message} />
          ))}
        </div>
      )}
    </div>
  )
}
