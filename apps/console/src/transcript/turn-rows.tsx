/** Where turns begin and end, and what waits for its turn. */
import type { FoldedTurn } from '@rivulet/client'
import { useState } from 'react'
import { Button } from '../shell/elements/button.tsx'
import { AgainIcon } from '../shell/elements/icons.tsx'
import { count, duration, money } from '../shell/human-units.ts'
import { textOf } from '../shell/queries.ts'
import { FailureDetail } from './contents/failure-detail.tsx'
import { MessageRow } from './message-row.tsx'
import { tokensIn } from './turn-usage.ts'

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

export function TurnOutcome({ turn, task, retry }: { turn: FoldedTurn; task: string; retry: (() => Promise<void>) | null }) {
  const { status, error, startedAt, finishedAt } = turn
  const ms = startedAt && finishedAt ? Date.parse(finishedAt) - Date.parse(startedAt) : null
  const tokens = tokensIn(turn)
  const spent = [tokens > 0 ? `${count(tokens)} tokens` : '', turn.cost ? money(turn.cost) : '']
  const facts = [ms === null ? '' : duration(ms), ...spent].filter(Boolean).join(' · ')
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
        {retry && <RetryButton retry={retry} />}
      </div>
    )
  if (status === 'discarded')
    return <p className="text-xs text-soft">{['Discarded: the agent no longer gets this turn', facts].filter(Boolean).join(' · ')}</p>
  if (status === 'canceled') return <p className="text-xs text-faint">{[error?.message ?? 'Stopped', facts].filter(Boolean).join(' · ')}</p>
  return facts ? <p className="text-xs text-faint">{facts}</p> : null
}

function RetryButton({ retry }: { retry: () => Promise<void> }) {
  const [state, setState] = useState<{ isSending: boolean; error: string | null }>({ isSending: false, error: null })
  return (
    <div className="mt-2 flex items-center gap-2">
      <Button disabled={state.isSending} onClick={() => void send()} className="text-ink">
        <AgainIcon />
        Retry
      </Button>
      {state.error}
    </div>
  )

  async function send(): Promise<void> {
    setState({ isSending: true, error: null })
    try {
      await retry()
    } catch (reason) {
      setState({ isSending: false, error: textOf(reason) })
    }
  }
}

/** A turn that has not said anything yet. */
export function PendingTurn({ turn, task }: { turn: FoldedTurn; task: string }) {
  return (
    <div className="space-y-2">
      {turn.status === 'queued' && <OwnInput turn={turn} task={task} />}
      <p className="breathing text-[13px] text-soft">{turn.status === 'queued' ? 'Queued …' : 'Starting …'}</p>
    </div>
  )
}

/** A turn that was canceled, or whose time was up, while it was queued. */
export function UnstartedTurn({ turn, task }: { turn: FoldedTurn; task: string }) {
  return (
    <div className="space-y-1">
      <OwnInput turn={turn} task={task} />
      <p className={`text-right text-xs ${turn.status === 'failed' ? 'text-bad' : 'text-faint'}`}>
        {['Never started', turn.error?.message].filter(Boolean).join(': ')}
      </p>
    </div>
  )
}

/** The input of a turn that is in no message yet, and may never be. */
function OwnInput({ turn: { number, input, attempt }, task }: { turn: FoldedTurn; task: string }) {
  if (!input) return <p className="text-right text-[13px] text-faint">The input is too large to show here.</p>
  const createdAt = new Date(0).toISOString()
  const message = { task, index: -number, turn: number, attempt, metadata: {}, createdAt, content: input }
  return (
    <div className="opacity-70">
      <MessageRow message={{ ...message, author: 'user', status: 'complete' }} />
    </div>
  )
}
