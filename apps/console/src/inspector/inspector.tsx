/** Behind the transcript: every event of the task's log, what it took, and the transcript as of any of them. */
import type { Step } from '@rivulet/client'
import { useClient } from '@rivulet/client/react'
import { useCallback, useMemo } from 'react'
import { CopyButton } from '../shell/elements/copy-button.tsx'
import { CloseIcon } from '../shell/elements/icons.tsx'
import { Split } from '../shell/elements/split.tsx'
import { useKeys } from '../shell/hooks/use-keys.ts'
import { usePaced } from '../shell/hooks/use-paced.ts'
import { count, size } from '../shell/human-units.ts'
import { usePolled } from '../shell/queries.ts'
import { setQuery, useQuery } from '../shell/route.ts'
import { useSession } from '../shell/session.tsx'
import { type EventLog, positionOf } from './event-log.ts'
import { curlOf } from './events/curl.ts'
import { EventDetail } from './events/event-detail.tsx'
import { EventList } from './events/event-list.tsx'
import type { Bar } from './timeline/bar.ts'
import { PacePlot } from './timeline/pace-plot.tsx'
import type { Stored } from './timeline/stored-bars.ts'
import { timelineOf } from './timeline/timeline.ts'
import { TimelineBars } from './timeline/timeline-bars.tsx'

export type InspectorProps = { log: EventLog; stored: Stored; id: string; onClose: () => void }

export function Inspector({ log, stored, id, onClose }: InspectorProps) {
  const { hasKey } = useSession()
  const [at, setAt] = useQuery('at')
  const paced = usePaced(log, 300)
  const pacedStored = usePaced(stored, 300)
  const steps = useSteps(id)
  const timeline = useMemo(() => timelineOf(paced.entries, { ...pacedStored, steps }), [paced.entries, pacedStored, steps])
  const position = at === null ? -1 : positionOf(log, at)
  const choose = useCallback((cursor: string | null) => setAt(cursor), [setAt])
  useKeys({ j: () => move(1), k: () => move(-1), Escape: () => (at === null ? onClose() : setAt(null)) })
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
      {log.isCaughtUp && timeline.stored > 0 && <ExpiredNote turns={timeline.stored} isAll={timeline.stored === stored.turns.length} />}
      <PacePlot entries={paced.entries} />
      <Split
        name="timeline"
        direction="column"
        label="Height of the timeline"
        first={timeline.bars.length > 0 && <TimelineBars {...{ timeline, chosen: at, onChoose: go }} />}
        second={<EventList log={log} chosen={chosen} onChoose={choose} />}
      />
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

/** To its event, with the transcript as it was then; without one, to its message. */
function go({ cursor, message }: Bar): void {
  setQuery(cursor === null ? { at: null, message: message === null ? null : String(message) } : { at: cursor, message: null })
}

const noSteps: readonly Step[] = []

/** A shared link may not read them. */
function useSteps(id: string): readonly Step[] {
  const client = useClient()
  const { shared } = useSession()
  return usePolled(['steps', id], async signal => (shared ? noSteps : client.tasks.get(id).steps({ signal })), 5_000).value ?? noSteps
}

function ExpiredNote({ turns, isAll }: { turns: number; isAll: boolean }) {
  return (
    <p role="note" className="border-b border-line bg-warn-well px-4 py-2 text-[13px] text-warn">
      {isAll ? 'The log has expired' : `The log of ${turns} ${turns === 1 ? 'turn' : 'turns'} has expired`}: the timeline shows what is
      stored, without single events.
    </p>
  )
}
