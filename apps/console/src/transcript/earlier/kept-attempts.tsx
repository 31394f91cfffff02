/** The attempts before the one that counts: each in a line with its error, and all of them side by side. */
import { type Attempt, type FoldedTurn, hasEnded, type Message, type TaskHandle } from '@rivulet/client'
import { useState } from 'react'
import { Button } from '../../shell/elements/button.tsx'
import { Dialog } from '../../shell/elements/dialog.tsx'
import { ChevronIcon } from '../../shell/elements/icons.tsx'
import { count, duration } from '../../shell/human-units.ts'
import { usePolled } from '../../shell/queries.ts'
import { MessageRow } from '../message-row.tsx'
import { tokensIn } from '../turn-usage.ts'
import { useAttempts } from './use-attempts.ts'

export function KeptAttempts({ task, turn, shown }: { task: TaskHandle | null; turn: FoldedTurn; shown: readonly number[] }) {
  const attempts = useAttempts(task, turn.number, turn.attempt)
  const [isComparing, setComparing] = useState(false)
  const earlier = attempts.filter(({ attempt }) => attempt < turn.attempt)
  if (earlier.length === 0) return null
  return (
    <div className="space-y-2">
      {earlier
        .filter(({ attempt }) => !shown.includes(attempt))
        .map(attempt => (
          <KeptAttempt key={attempt.attempt} attempt={attempt} />
        ))}
      <Button kind="quiet" className="text-[13px]" onClick={() => setComparing(true)}>
        Compare the {attempts.length} attempts
      </Button>
      {isComparing && task && <Comparison task={task} turn={turn} attempts={attempts} onClose={() => setComparing(false)} />}
    </div>
  )
}

function KeptAttempt({ attempt }: { attempt: Attempt }) {
  const [isOpen, setOpen] = useState(false)
  return (
    <div className="rounded-lg border border-dashed border-line-strong px-3 py-2 text-[13px] text-soft">
      <button
        type="button"
        aria-expanded={isOpen}
        onClick={() => setOpen(!isOpen)}
        className="inline-flex items-center gap-1 text-left hover:text-ink"
      >
        <span className={`transition-transform ${isOpen ? 'rotate-90' : ''}`}>
          <ChevronIcon />
        </span>
        <span>
          Attempt {attempt.attempt} did not finish{attempt.error && `: ${attempt.error.message}`}. What it said does not count.
        </span>
      </button>
      {isOpen && (
        <div className="mt-2 space-y-2">
          <p className="text-xs">{factsOf(attempt)}</p>
          {attempt.error?.detail && (
            <p className="font-mono text-xs whitespace-pre-wrap text-bad [overflow-wrap:anywhere]">{attempt.error.detail}</p>
          )}
          <Said messages={attempt.messages ?? []} isCut={attempt.omitted !== undefined} />
        </div>
      )}
    </div>
  )
}

type ComparisonProps = { task: TaskHandle; turn: FoldedTurn; attempts: readonly Attempt[]; onClose: () => void }

function Comparison({ task, turn, attempts, onClose }: ComparisonProps) {
  return (
    <Dialog title={`Turn ${turn.number}: its attempts`} onClose={onClose} isWide>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls has to be reachable by keyboard */}
      <section tabIndex={0} aria-label="Attempts side by side" className="flex gap-4 overflow-x-auto pb-2">
        {attempts.map(attempt => (
          <section
            key={attempt.attempt}
            aria-label={`Attempt ${attempt.attempt}`}
            className="min-w-64 flex-1 basis-64 rounded-lg border border-line p-3"
          >
            <h3 className="font-semibold">
              Attempt {attempt.attempt} <span className={lookOf(attempt)}>{attempt.status}</span>
            </h3>
            <p className="mt-1 text-xs text-faint">{factsOf(attempt)}</p>
            {attempt.error && (
              <p className="mt-2 text-[13px] text-bad [overflow-wrap:anywhere]">
                {attempt.error.code}: {attempt.error.detail ?? attempt.error.message}
              </p>
            )}
            <div className="mt-3">
              {attempt.messages ? (
                <Said messages={attempt.messages} isCut={attempt.omitted !== undefined} />
              ) : (
                <SaidLast task={task} turn={turn} />
              )}
            </div>
          </section>
        ))}
      </section>
    </Dialog>
  )
}

/** The messages of the latest attempt are those of the turn. */
function SaidLast({ task, turn: { number, status, attempt } }: { task: TaskHandle; turn: FoldedTurn }) {
  const name = ['messages', task.id, number, attempt, status]
  const { value, error } = usePolled(name, signal => task.messages({ turn: number }, { signal }), hasEnded(status) ? false : 2_000)
  if (!value) return <p className="text-[13px] text-faint">{error ?? 'Loading …'}</p>
  return <Said messages={value.data.filter(({ author }) => author !== 'user')} isCut={value.nextCursor !== null} />
}

function Said({ messages, isCut }: { messages: readonly Message[]; isCut: boolean }) {
  if (messages.length === 0) return <p className="text-[13px] text-faint">It said nothing.</p>
  return (
    <div className="space-y-3">
      {messages.map(message => (
        <MessageRow key={message.index} message={message} />
      ))}
      {isCut && <p className="text-xs text-faint">The rest is left out.</p>}
    </div>
  )
}

function lookOf({ status }: Attempt): string {
  if (status === 'failed' || status === 'lost') return 'text-bad'
  return status === 'completed' ? 'text-good' : 'text-soft'
}

function factsOf({ startedAt, finishedAt, worker, usage }: Attempt): string {
  const ms = startedAt && finishedAt ? Date.parse(finishedAt) - Date.parse(startedAt) : null
  const tokens = tokensIn(usage ? { usage } : {})
  return [ms === null ? '' : duration(ms), tokens > 0 ? `${count(tokens)} tokens` : '', worker ? `worker ${worker}` : '']
    .filter(Boolean)
    .join(' · ')
}
