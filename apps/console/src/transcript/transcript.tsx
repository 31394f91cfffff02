/** What a task has said, from any point to any other, with its end in sight for as long as the reader wants. */
import type { FoldedTurn, Message } from '@rivulet/client'
import { memo, type ReactNode, useEffect, useMemo } from 'react'
import { DownIcon } from '../shell/elements/icons.tsx'
import { ToolCard } from './contents/tool-card.tsx'
import type { Superseded } from './earlier/superseded.ts'
import { SupersededAttempt } from './earlier/superseded-attempt.tsx'
import type { Earlier } from './earlier/use-earlier.ts'
import { MessageRow } from './message-row.tsx'
import { type Row, rowsOf } from './rows.ts'
import { PendingTurn, TurnOutcome, TurnStart } from './turn-rows.tsx'
import { useMessageWindow } from './use-message-window.ts'

export type TranscriptProps = {
  task: string
  messages: readonly Message[]
  turns: readonly FoldedTurn[]
  earlier: Earlier
  superseded: readonly Superseded[]
  /** Shown while the task has no messages. */
  placeholder: ReactNode
}

export function Transcript({ task, messages, turns, earlier, superseded, placeholder }: TranscriptProps) {
  const all = useMemo(() => (earlier.messages.length > 0 ? [...earlier.messages, ...messages] : messages), [earlier.messages, messages])
  const first = all[0]?.index ?? 0
  const end = first + all.length
  const { from, to, isFollowing, scroller, content, topMark, bottomMark, follow } = useMessageWindow({
    first,
    end,
    loadEarlier: earlier.load,
  })
  // Load earlier messages until the page is long enough to scroll.
  useEffect(() => {
    const element = scroller.current
    if (element && earlier.hasMore && element.scrollHeight <= element.clientHeight) earlier.load()
  })
  const rows = rowsOf(all.slice(from - first, to - first), turns, to === end, superseded)
  return (
    <div className="relative min-h-0 grow">
      <div
        ref={scroller}
        // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls has to be reachable by keyboard
        tabIndex={0}
        role="log"
        aria-label="Transcript"
        aria-live="off"
        className="h-full overflow-y-auto overscroll-contain"
      >
        <div ref={content} className="mx-auto flex min-h-full max-w-3xl flex-col gap-4 px-4 py-6 sm:px-6">
          <div ref={topMark} />
          {(from > first || earlier.hasMore) && <p className="text-center text-xs text-faint">Earlier messages …</p>}
          {rows.length === 0 && !earlier.hasMore && placeholder}
          {rows.map(row => (
            <TranscriptRow key={row.key} row={row} task={task} />
          ))}
          <div ref={bottomMark} />
        </div>
      </div>
      {!isFollowing && (
        <button
          type="button"
          onClick={follow}
          className="absolute bottom-4 left-1/2 flex -translate-x-1/2 items-center gap-1.5 rounded-full border border-line bg-panel px-3 py-1.5 text-[13px] shadow-float hover:border-line-strong"
        >
          <DownIcon />
          To the latest
        </button>
      )}
    </div>
  )
}

const TranscriptRow = memo(
  ({ row, task }: { row: Row; task: string }) => {
    switch (row.kind) {
      case 'turn':
        return <TurnStart turn={row.turn} />
      case 'message':
        return <MessageRow message={row.message} />
      case 'tool':
        return <ToolCard request={row.request} response={row.response} />
      case 'superseded':
        return <SupersededAttempt group={row.group} />
      case 'outcome':
        return <TurnOutcome turn={row.turn} task={task} />
      case 'pending':
        return <PendingTurn turn={row.turn} task={task} />
      default:
        return row satisfies never
    }
  },
  (before, after) => isSame(before.row, after.row),
)

/** Rows are made anew with each change; what they show is often the same. */
function isSame(a: Row, b: Row): boolean {
  if (a.kind === 'message' && b.kind === 'message') return a.message === b.message
  if (a.kind === 'tool' && b.kind === 'tool') return a.request === b.request && a.response === b.response
  if (a.kind === 'superseded' && b.kind === 'superseded') return a.group === b.group
  return 'turn' in a && 'turn' in b && a.kind === b.kind && a.turn === b.turn
}
