/** What a task has said, from any point to any other, with its end in sight for as long as the reader wants. */
import type { FoldedTurn, Message, TaskHandle } from '@rivulet/client'
import { lazy, memo, type ReactNode, Suspense, useCallback, useEffect, useLayoutEffect, useMemo, useState } from 'react'
import { DownIcon } from '../shell/elements/icons.tsx'
import type { Answer } from '../waits/use-answer.ts'
import { ToolCard } from './contents/tool-card.tsx'
import type { Superseded } from './earlier/superseded.ts'
import { SupersededAttempt } from './earlier/superseded-attempt.tsx'
import type { Earlier } from './earlier/use-earlier.ts'
import { InputRow } from './input-row.tsx'
import { MessageBar } from './message-bar.tsx'
import { MessageRow } from './message-row.tsx'
import { type Row, rowsOf, turnNumberOf } from './rows.ts'
import type { TurnActs } from './turn-acts.ts'
import { PendingTurn, TurnOutcome, TurnStart, UnstartedTurn } from './turn-rows.tsx'
import { useMessageWindow } from './use-message-window.ts'
import { VersionPager, type VersionPagerProps } from './version-pager.tsx'
import { foldVersions, versionsOf } from './versions.ts'

// Most tasks have none of these, so they are loaded when they are needed.
const WaitRow = lazy(async () => ({ default: (await import('../waits/wait-row.tsx')).WaitRow }))
const ChildCard = lazy(async () => ({ default: (await import('./children/child-card.tsx')).ChildCard }))
const KeptAttempts = lazy(async () => ({ default: (await import('./earlier/kept-attempts.tsx')).KeptAttempts }))

const pageSize = 40

type TranscriptProps = {
  task: string
  /** For what is read from the server; null for the transcript as it was. */
  handle: TaskHandle | null
  messages: readonly Message[]
  turns: readonly FoldedTurn[]
  earlier: Earlier
  superseded: readonly Superseded[]
  /** The index of the message that is to be in sight; null for the end. */
  goTo: number | null
  /** Null where the page may not answer. */
  answer: Answer | null
  /** Null where the page may not write. */
  acts: TurnActs | null
  /** Shown while the task has no messages. */
  placeholder: ReactNode
}

export function Transcript({ task, handle, messages, turns, earlier, superseded, goTo, answer, acts, placeholder }: TranscriptProps) {
  const all = useMemo(() => (earlier.messages.length > 0 ? [...earlier.messages, ...messages] : messages), [earlier.messages, messages])
  const first = all[0]?.index ?? 0
  const end = first + all.length
  const { from, to, isFollowing, scroller, topMark, bottomMark, follow, show } = useMessageWindow({
    first,
    end,
    loadEarlier: earlier.load,
  })
  // Load earlier messages until the page is long enough to scroll. A page of rows has an assumed height until the browser has drawn it.
  useEffect(() => {
    const element = scroller.current
    if (!element?.firstElementChild || !earlier.hasMore) return
    const sized = new ResizeObserver(() => element.scrollHeight <= element.clientHeight && earlier.load())
    sized.observe(element.firstElementChild)
    return () => sized.disconnect()
  })
  const [chosen, setChosen] = useState<ReadonlyMap<number, number>>(new Map())
  const showVersion = useCallback((latest: number, turnNumber: number) => setChosen(known => new Map(known).set(latest, turnNumber)), [])
  const every = rowsOf(all.slice(from - first, to - first), turns, {
    isFromStart: from === first && !earlier.hasMore,
    isToEnd: to === end,
    superseded,
  })
  const rows = foldVersions(every, turns, chosen)
  const isKnown = goTo !== null && goTo >= first && goTo < end
  const goalKey = isKnown ? rows.find(row => holds(row, goTo))?.key : undefined
  // biome-ignore lint/correctness/useExhaustiveDependencies: once for each message, as soon as it is there
  useEffect(() => {
    if (goTo === null) return
    if (isKnown) {
      const turnNumber = all[goTo - first]?.turn ?? 0
      const latest = versionsOf(turns).get(turnNumber)?.at(-1)
      if (latest !== undefined) showVersion(latest, turnNumber)
      show(goTo)
    } else if (goTo < first && earlier.hasMore) earlier.load()
  }, [goTo, isKnown, first])
  // Before the browser paints, because the rows above it move the scroller, and a scroll to the end means that the reader follows.
  // biome-ignore lint/correctness/useExhaustiveDependencies: when the row is drawn
  useLayoutEffect(() => {
    const row = goalKey === undefined ? null : scroller.current?.querySelector(`[data-row="${goalKey}"]`)?.firstElementChild
    row?.scrollIntoView({ block: 'center' })
  }, [goTo, goalKey])
  const last = turns.at(-1)
  const failed = last?.status === 'failed' ? last.number : null
  const discarded = turns.flatMap(({ status, number }) => (status === 'discarded' ? [number] : [])).join(' ')
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
        <div className="mx-auto flex min-h-full max-w-3xl flex-col gap-4 px-4 py-6 sm:px-6">
          <div ref={topMark} />
          {(from > first || earlier.hasMore) && <p className="text-center text-xs text-faint">Earlier messages …</p>}
          {rows.length === 0 && !earlier.hasMore && placeholder}
          {pagesOf(rows).map(page => (
            <RowPage
              key={page.key}
              rows={page.rows}
              {...{ discarded, failed, goalKey, task, handle, answer, acts }}
              onVersion={showVersion}
            />
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

type RowPageProps = Pick<TranscriptProps, 'task' | 'handle' | 'answer' | 'acts'> & {
  rows: readonly Row[]
  /** The numbers of discarded turns, as text, which is compared by its value. */
  discarded: string
  /** The number of the last turn, if it failed. */
  failed: number | null
  goalKey: string | undefined
  onVersion: VersionPagerProps['onShow']
}

/** What is far from the screen is in the page, and is not drawn. By pages, because the browser watches each of them whenever anything moves. */
const RowPage = memo(
  ({ rows, discarded, failed, goalKey, task, handle, answer, acts, onVersion }: RowPageProps) => {
    const numbers = discarded.split(' ')
    return (
      <div className="row-page">
        {rows.map(row => {
          const isDiscarded = row.kind !== 'versions' && numbers.includes(String(turnNumberOf(row)))
          return (
            <div
              key={row.key}
              data-row={row.key}
              className={`${isDiscarded ? 'flex flex-col border-l-2 border-line-strong pl-3 text-soft grayscale' : 'contents'} ${row.key === goalKey ? 'goal' : ''}`}
            >
              <TranscriptRow
                {...{ row, task, handle, answer, onVersion }}
                acts={isDiscarded ? null : acts}
                isLastFailed={turnNumberOf(row) === failed}
              />
            </div>
          )
        })}
      </div>
    )
  },
  (before, after) =>
    before.rows.length === after.rows.length &&
    (['discarded', 'failed', 'goalKey', 'handle', 'answer', 'acts'] as const).every(name => before[name] === after[name]) &&
    before.rows.every((row, place) => row.key === after.rows[place]?.key && isSame(row, after.rows[place])),
)

type TranscriptRowProps = { row: Row; isLastFailed: boolean; onVersion: VersionPagerProps['onShow'] } & Pick<
  TranscriptProps,
  'task' | 'handle' | 'answer' | 'acts'
>

const TranscriptRow = memo(
  ({ row, task, handle, answer, acts, isLastFailed, onVersion }: TranscriptRowProps) => {
    switch (row.kind) {
      case 'turn':
        return <TurnStart turn={row.turn} />
      case 'message':
        return (
          <div className="group flex flex-col">
            {row.message.author === 'user' ? <InputRow message={row.message} acts={acts} /> : <MessageRow message={row.message} />}
            <MessageBar message={row.message} begins={row.begins} task={task} fork={acts && row.isOver ? acts.fork : null} />
          </div>
        )
      case 'tool':
        return <ToolCard request={row.request} response={row.response} isOver={row.isOver} />
      case 'wait':
        return (
          <Suspense>
            {row.wait.child ? <ChildCard wait={row.wait} child={row.wait.child} /> : <WaitRow wait={row.wait} answer={answer} />}
          </Suspense>
        )
      case 'versions':
        return <VersionPager numbers={row.numbers} shown={row.shown} onShow={onVersion} />
      case 'superseded':
        return <SupersededAttempt group={row.group} />
      case 'attempts':
        return (
          <Suspense>
            <KeptAttempts task={handle} turn={row.turn} shown={row.shown} />
          </Suspense>
        )
      case 'outcome':
        return <TurnOutcome turn={row.turn} task={task} retry={isLastFailed && acts ? acts.retry : null} />
      case 'pending':
        return <PendingTurn turn={row.turn} task={task} />
      case 'unstarted':
        return <UnstartedTurn turn={row.turn} task={task} />
      default:
        return row satisfies never
    }
  },
  (before, after) =>
    (['handle', 'answer', 'acts', 'isLastFailed'] as const).every(name => before[name] === after[name]) && isSame(before.row, after.row),
)

function holds(row: Row, index: number): boolean {
  if (row.kind === 'message') return row.message.index === index
  return row.kind === 'tool' && (row.request?.index === index || row.response?.index === index)
}

/** Pages of messages have fixed borders, so that a row stays in its page whatever is loaded before it. A row without a message is in that of the one before. */
function pagesOf(rows: readonly Row[]): { key: number; rows: Row[] }[] {
  const pages: { key: number; rows: Row[] }[] = []
  for (const row of rows) {
    const index = indexOf(row)
    const key = index === null ? (pages.at(-1)?.key ?? -1) : Math.floor(index / pageSize)
    const page = pages.at(-1)
    if (page?.key === key) page.rows.push(row)
    else pages.push({ key, rows: [row] })
  }
  return pages
}

function indexOf(row: Row): number | null {
  if (row.kind === 'message') return row.message.index
  return row.kind === 'tool' ? ((row.request ?? row.response)?.index ?? null) : null
}

/** Rows are made anew with each change; what they show is often the same. */
function isSame(a: Row, b: Row): boolean {
  if (a.kind === 'message' && b.kind === 'message') return a.message === b.message && a.isOver === b.isOver && a.begins === b.begins
  if (a.kind === 'tool' && b.kind === 'tool') return a.request === b.request && a.response === b.response && a.isOver === b.isOver
  if (a.kind === 'wait' && b.kind === 'wait') return a.wait === b.wait
  if (a.kind === 'versions' && b.kind === 'versions') return a.shown === b.shown && a.numbers.length === b.numbers.length
  if (a.kind === 'superseded' && b.kind === 'superseded') return a.group === b.group
  if (a.kind === 'attempts' && b.kind === 'attempts') return a.turn === b.turn && a.shown.length === b.shown.length
  return 'turn' in a && 'turn' in b && a.kind === b.kind && a.turn === b.turn
}
