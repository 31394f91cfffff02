/** A status as a word and a colour: the colour is never alone. */
import type { TurnStatus } from '@rivulet/client'

const looks: Record<TurnStatus, { dot: string; text: string }> = {
  queued: { dot: 'border-2 border-line-strong', text: 'text-soft' },
  running: { dot: 'bg-accent breathing', text: 'text-accent' },
  waiting: { dot: 'bg-warn', text: 'text-warn' },
  completed: { dot: 'bg-good', text: 'text-soft' },
  failed: { dot: 'bg-bad', text: 'text-bad' },
  canceled: { dot: 'bg-line-strong', text: 'text-soft' },
  discarded: { dot: 'bg-line-strong', text: 'text-soft' },
}

export function StatusMark({ status }: { status: TurnStatus }) {
  const { dot, text } = looks[status]
  return (
    <span className={`inline-flex items-center gap-2 whitespace-nowrap ${text}`}>
      <span className={`size-2 shrink-0 rounded-full ${dot}`} />
      {status}
    </span>
  )
}
