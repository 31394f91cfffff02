/** Behind the transcript: where the time of the task went, every event of its log, and the transcript as of any of them. */
import { isLogged, type TaskHandle } from '@rivulet/client'
import { useCallback, useMemo, useState } from 'react'
import { CopyButton } from '../shell/elements/copy-button.tsx'
import { CloseIcon } from '../shell/elements/icons.tsx'
import { Split } from '../shell/elements/split.tsx'
import { useKeys } from '../shell/hooks/use-keys.ts'
import { useNow } from '../shell/hooks/use-now.ts'
import { usePaced } from '../shell/hooks/use-paced.ts'
import { count, size } from '../shell/human-units.ts'
import { setQuery, useQuery } from '../shell/route.ts'
import { useSession } from '../shell/session.tsx'
import { type EventLog, positionOf } from './event-log.ts'
import { curlOf } from './events/curl.ts'
import { EventDetail } from './events/event-detail.tsx'
import { EventList } from './events/event-list.tsx'
import { PacePlot } from './pace-plot.tsx'
import type { Span } from './waterfall/span.ts'
import { SpanDetail } from './waterfall/span-detail.tsx'
import { cursorOf } from './waterfall/span-event.ts'
import { type Known, rangeOf } from './waterfall/spans.ts'
import { useSpans } from './waterfall/use-spans.ts'
import { Waterfall } from './waterfall/waterfall.tsx'

type InspectorProps = {
  handle: TaskHandle | null
  log: EventLog
  /** What the page has of the task. */
  known: Pick<Known, 'turns' | 'messages'>
  id: string
  onClose: () => void
}

export function Inspector({ handle, log, known, id, onClose }: InspectorProps) {
  const { hasKey } = useSession()
  const [at, setAt] = useQuery('at')
  const paced = usePaced(log, 300)
  const spans = useSpans(handle, usePaced(known, 300))
  const now = useNow(spans.some(({ to }) => to === null) ? 500 : null)
  const [chosenSpan, setChosenSpan] = useState<Span | null>(null)
  const span = chosenSpan && (spans.find(({ key }) => key === chosenSpan.key) ?? chosenSpan)
  const expired = useExpiredTurns(log, known.turns)
  const position = at === null ? -1 : positionOf(log, at)
  const choose = useCallback((cursor: string | null) => setAt(cursor), [setAt])
  const chooseSpan = useCallback((span: Span) => {
    setChosenSpan(span)
    setQuery({ at: null, message: span.message === null || span.isEarlier ? null : String(span.message) })
  }, [])
  useKeys({ j: () => move(1), k: () => move(-1), Escape: leave })
  const chosen = log.entries[position]
  const before = log.entries[position - 1]?.event.cursor ?? null

  return (
    <aside aria-label="Inspector" className="flex min-h-0 grow flex-col bg-panel">
      <header className="flex items-center gap-3 border-b border-line px-4 py-2">
        <h2 className="font-semibold">Inspector</h2>
        <p className="text-[13px] text-soft tabular-nums">
          {count(log.dropped + log.entries.length)} events · {size(log.bytes)}
        </p>
        <span className="grow" />
        <CopyButton label="Copy the log's request as curl" text={() => curlOf({ origin: location.origin, id, after: null, hasKey })}>
          curl
        </CopyButton>
        <button
          type="button"
          aria-label="Close the inspector"
          onClick={onClose}
          className="rounded-lg p-1.5 text-soft hover:bg-well hover:text-ink"
        >
          <CloseIcon />
        </button>
      </header>
      {log.isCaughtUp && expired > 0 && <ExpiredNote turns={expired} isAll={expired === known.turns.length} />}
      <PacePlot entries={paced.entries} />
      <Split
        name="waterfall"
        direction="column"
        label="Height of the waterfall"
        normal={55}
        first={spans.length > 0 && <Waterfall {...{ spans, now, chosenKey: span?.key ?? null, onChoose: chooseSpan }} />}
        second={
          <>
            {span && !chosen && (
              <SpanDetail span={span} start={rangeOf(spans, now).from} onGoTo={goTo(span)} onClose={() => setChosenSpan(null)} />
            )}
            {/* Hidden, not removed, so that it keeps its place and its filter. */}
            <div className={span && !chosen ? 'hidden' : 'contents'}>
              <EventList log={log} chosen={chosen} onChoose={choose} />
            </div>
          </>
        }
      />
      {chosen && <EventDetail entry={chosen} curl={curlOf({ origin: location.origin, id, after: before, hasKey })} />}
    </aside>
  )

  function goTo(span: Span): (() => void) | null {
    const cursor = cursorOf(span, log.entries)
    return cursor === null ? null : () => setQuery({ at: cursor, message: null })
  }

  function leave(): void {
    if (at !== null) setAt(null)
    else if (span) setChosenSpan(null)
    else onClose()
  }

  function move(by: 1 | -1): void {
    const target = position < 0 ? (by > 0 ? 0 : log.entries.length - 1) : position + by
    // Snapshots and `caught_up` have the cursor of an event, so the cursor alone is not unique.
    for (let place = target; place >= 0 && place < log.entries.length; place += by) {
      const cursor = log.entries[place]?.event.cursor
      if (cursor !== undefined && cursor !== at) {
        setAt(cursor)
        return
      }
    }
  }
}

/** How many turns have no event in the log. */
function useExpiredTurns(log: EventLog, turns: Known['turns']): number {
  const inLog = useMemo(() => new Set(log.entries.map(({ event }) => (isLogged(event) ? event.turn : 0))), [log])
  return turns.filter(({ number }) => !inLog.has(number)).length
}

function ExpiredNote({ turns, isAll }: { turns: number; isAll: boolean }) {
  return (
    <p role="note" className="border-b border-line bg-warn-well px-4 py-2 text-[13px] text-warn">
      {isAll ? 'The log has expired' : `The log of ${turns} ${turns === 1 ? 'turn' : 'turns'} has expired`}: the waterfall shows what is
      stored, without single events.
    </p>
  )
}
