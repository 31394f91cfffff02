/** Every event on a line of its own. The list stays at its end until the reader scrolls up or selects an event. */
import { memo, useLayoutEffect } from 'react'
import { useFixedRows } from '../shell/hooks/use-fixed-rows.ts'
import { useStickToEnd } from '../shell/hooks/use-stick-to-end.ts'
import { duration, size } from '../shell/human-units.ts'
import type { Entry, EventLog } from './event-log.ts'
import { summaryOf } from './event-summary.ts'

const rowPx = 28

export function EventList({ log, chosen, onChoose }: { log: EventLog; chosen: number; onChoose: (cursor: string) => void }) {
  const { entries } = log
  const { scroller, from, to, totalPx, show } = useFixedRows(entries.length, rowPx)

  const { letGo } = useStickToEnd(scroller)

  // Also when the list becomes lower, because the timeline above it has grown.
  // biome-ignore lint/correctness/useExhaustiveDependencies: only when another one is chosen
  useLayoutEffect(() => {
    const element = scroller.current
    if (chosen < 0 || !element) return
    letGo()
    const resized = new ResizeObserver(() => show(chosen))
    resized.observe(element)
    return () => resized.disconnect()
  }, [chosen])

  return (
    <div className="flex min-h-24 grow flex-col border-t border-line">
      <div aria-hidden="true" className="flex gap-3 border-b border-line px-4 py-1 text-xs text-faint">
        <span className="w-14">cursor</span>
        <span className="w-14 text-right">after</span>
        <span className="w-32">event</span>
        <span className="grow">what</span>
        <span>size</span>
      </div>
      <div ref={scroller} className="min-h-0 grow overflow-y-auto overscroll-contain">
        <ol aria-label="Events" className="relative" style={{ height: totalPx }}>
          {entries.slice(from, to).map((entry, place) => (
            <li key={entry.number} className="absolute inset-x-0" style={{ top: (from + place) * rowPx, height: rowPx }}>
              <EventRow entry={entry} isChosen={from + place === chosen} onChoose={onChoose} />
            </li>
          ))}
        </ol>
      </div>
    </div>
  )
}

const EventRow = memo(({ entry, isChosen, onChoose }: { entry: Entry; isChosen: boolean; onChoose: (cursor: string) => void }) => {
  const { event, sinceMs } = entry
  return (
    <button
      type="button"
      aria-current={isChosen ? 'true' : undefined}
      onClick={() => onChoose(event.cursor)}
      className={`flex h-full w-full items-center gap-3 px-4 text-left font-mono text-xs whitespace-nowrap -outline-offset-2 ${isChosen ? 'bg-accent-well' : 'hover:bg-well'}`}
    >
      <span className="w-14 shrink-0 text-soft">{event.cursor}</span>
      <span className="w-14 shrink-0 text-right text-faint">{sinceMs === null ? '' : `+${duration(sinceMs)}`}</span>
      <span className={`w-32 shrink-0 ${lookOf(entry)}`}>{event.type}</span>
      <span className="min-w-0 grow truncate text-soft">{summaryOf(event)}</span>
      <span className="shrink-0 text-faint">{size(entry.size)}</span>
    </button>
  )
})

function lookOf({ event }: Entry): string {
  if ('error' in event && event.error) return 'text-bad'
  if (event.type.startsWith('turn.')) return 'text-accent'
  if (event.type === 'message.delta') return 'text-soft'
  return event.type.startsWith('message.') ? 'text-good' : 'text-warn'
}
