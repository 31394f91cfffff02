/** Where turns begin and end, and what waits for its turn. */
import type { FoldedTurn } from '@rivulet/client'
import { count, duration } from '../shell/human-units.ts'
import { FailureDetail } from './contents/failure-detail.tsx'
import { MessageRow } from './message-row.tsx'
import { tokensOf } from './turn-usage.ts'

export function TurnStart({ turn: { number, attempt } }: { turn: FoldedTurn }) {
  if (number === 1 && attempt <= 1) return null
  return (
    <div className="flex items-center gap-3 pt-2 text-xs text-faint">
      <span className="h-px grow bg-line" />
      <span>
        Turn {number}
        {attempt > 1 && <span className="text-warn"> · attempt {attempt}</span>}
      </span>
      <span className="h-px grow bg-line" />
    </div>
  )
}

export function TurnOutcome({ turn, task }: { turn: FoldedTurn; task: string }) {
  const { status, error, startedAt, finishedAt } = turn
  const ms = startedAt && finishedAt ? Date.parse(finishedAt) - Date.parse(startedAt) : null
  const tokens = tokensOf(turn.usage)
  const facts = [ms === null ? '' : duration(ms), tokens > 0 ? `${count(tokens)} tokens` : ''].filter(Boolean).join(' · ')
  if (status === 'failed')
    return (
      <div role="alert" className="rounded-lg border border-bad bg-bad-well px-3 py-2 text-[13px] text-bad">
        <strong className="font-semibold">The turn failed</strong>
        {error && (
          <>
            {' '}
            ({error.code}): {error.message}
            <FailureDetail task={task} turnNumber={turn.number} />
          </>
        )}
        {facts && <span className="block text-xs">{facts}</span>}
      </div>
    )
  if (status === 'canceled') return <p className="text-xs text-faint">{[error?.message ?? 'Stopped', facts].filter(Boolean).join(' · ')}</p>
  return facts ? <p className="text-xs text-faint">{facts}</p> : null
}

/** A turn that has not said anything yet. */
export function PendingTurn({ turn: { number, input, omitted, status, attempt }, task }: { turn: FoldedTurn; task: string }) {
  const createdAt = new Date(0).toISOString()
  return (
    <div className="space-y-2">
      {input && status === 'queued' && (
        <div className="opacity-60">
          <MessageRow
            message={{
              task,
              index: -number,
              turn: number,
              attempt,
              author: 'user',
              content: input,
              metadata: {},
              status: 'complete',
              createdAt,
            }}
          />
        </div>
      )}
      {omitted?.includes('input') && status === 'queued' && <p className="text-[13px] text-faint">The input is too large to show here.</p>}
      <p className="breathing text-[13px] text-soft">{status === 'queued' ? 'Queued …' : 'Starting …'}</p>
    </div>
  )
}
