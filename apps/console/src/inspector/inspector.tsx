/** Behind the transcript: every event of the task's log, what it took, and the transcript as of any of them. */
import { useCallback } from 'react'
import { CopyButton } from '../shell/elements/copy-button.tsx'
import { CloseIcon } from '../shell/elements/icons.tsx'
import { useKeys } from '../shell/hooks/use-keys.ts'
import { usePaced } from '../shell/hooks/use-paced.ts'
import { count, size } from '../shell/human-units.ts'
import { useQuery } from '../shell/route.ts'
import { useSession } from '../shell/session.tsx'
import { curlOf } from './curl.ts'
import { EventDetail } from './event-detail.tsx'
import { EventList } from './event-list.tsx'
import { type EventLog, positionOf } from './event-log.ts'
import { PacePlot } from './pace-plot.tsx'
import { TimelineBars } from './timeline-bars.tsx'

export function Inspector({ log, id, onClose }: { log: EventLog; id: string; onClose: () => void }) {
  const { hasKey } = useSession()
  const [at, setAt] = useQuery('at')
  const paced = usePaced(log, 300)
  const position = at === null ? -1 : positionOf(log, at)
  const choose = useCallback((cursor: string | null) => setAt(cursor), [setAt])
  useKeys({ j: () => move(1), k: () => move(-1), Escape: () => (at === null ? onClose() : setAt(null)) })
  const chosen = log.entries[position]
  const before = log.entries[position - 1]?.event.cursor ?? null

  return (
    <aside
      aria-label="Inspector"
      className="flex min-h-0 shrink-0 flex-col border-line bg-panel max-lg:basis-1/2 max-lg:border-t lg:w-[44%] lg:max-w-2xl lg:border-l"
    >
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
      <PacePlot entries={paced.entries} />
      <TimelineBars entries={paced.entries} chosen={at} onChoose={choose} />
      <EventList log={log} chosen={position} onChoose={choose} />
      {chosen && <EventDetail entry={chosen} curl={curlOf({ origin: location.origin, id, after: before, hasKey })} />}
    </aside>
  )

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
