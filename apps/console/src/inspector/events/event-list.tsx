/** The events on lines. The list stays at its end until the reader scrolls up or selects an event. */
import { memo, useLayoutEffect, useRef, useState } from 'react'
import { useFixedRows } from '../../shell/hooks/use-fixed-rows.ts'
import { useStickToEnd } from '../../shell/hooks/use-stick-to-end.ts'
import { duration, size } from '../../shell/human-units.ts'
import type { Entry, EventLog } from '../event-log.ts'
import { type EventFilter, type EventRow, type EventRows, filters, growRows, rowWith } from './event-rows.ts'
import { summaryOf } from './event-summary.ts'

const rowPx = 28

const filterNames: Record<EventFilter, string> = {
  all: 'All events',
  turns: 'Turns',
  messages: 'Messages',
  tools: 'Tools',
  others: 'Others',
}

type EventListProps = { log: EventLog; chosen: Entry | undefined; onChoose: (cursor: string) => void }

export const EventList = memo(({ log, chosen, onChoose }: EventListProps) => {
  const [filter, setFilter] = useState<EventFilter>('all')
  const [isFolding, setFolding] = useState(true)
  const grown = useRef<EventRows | null>(null)
  grown.current = growRows(grown.current, log, filter, isFolding)
  const { rows } = grown.current
  const { scroller, from, to, totalPx, show } = useFixedRows(rows.length, rowPx)
  const chosenRow = chosen ? rowWith(rows, chosen.number) : -1

  const { letGo } = useStickToEnd(scroller)

  // Also when the list becomes lower, because the waterfall above it has grown.
  // biome-ignore lint/correctness/useExhaustiveDependencies: only when another one is chosen
  useLayoutEffect(() => {
    const element = scroller.current
    if (chosenRow < 0 || !element) return
    letGo()
    const resized = new ResizeObserver(() => show(chosenRow))
    resized.observe(element)
    return () => resized.disconnect()
  }, [chosenRow])

  return (
    <div className="flex min-h-24 grow basis-0 flex-col">
      <div className="flex flex-wrap items-center gap-x-3 gap-y-1 px-4 py-1.5 text-[13px] text-soft">
        <select
          aria-label="Which events"
          value={filter}
          onChange={event => setFilter(event.target.value as EventFilter)}
          className="rounded-md border border-line bg-panel px-1.5 py-0.5 text-ink"
        >
          {filters.map(name => (
            <option key={name} value={name}>
              {filterNames[name]}
            </option>
          ))}
        </select>
        <label className="flex items-center gap-1.5">
          <input type="checkbox" checked={isFolding} onChange={event => setFolding(event.target.checked)} className="accent-accent" />
          Fold deltas
        </label>
        <span className="text-xs text-faint tabular-nums">{rows.length.toLocaleString('en')} rows</span>
      </div>
      <div aria-hidden="true" className="flex gap-3 border-y border-line px-4 py-1 text-xs text-faint">
        <span className="w-14">cursor</span>
        <span className="w-14 text-right">after</span>
        <span className="w-32">event</span>
        <span className="grow">what</span>
        <span>size</span>
      </div>
      <div ref={scroller} className="min-h-0 grow overflow-y-auto overscroll-contain contain-strict">
        <ol aria-label="Events" className="relative" style={{ height: totalPx }}>
          {rows.slice(from, to).map((row, place) => (
            <li key={row.number} className="absolute inset-x-0" style={{ top: (from + place) * rowPx, height: rowPx }}>
              <EventLine row={row} isChosen={from + place === chosenRow} onChoose={onChoose} />
            </li>
          ))}
        </ol>
      </div>
    </div>
  )
})

const EventLine = memo(({ row, isChosen, onChoose }: { row: EventRow; isChosen: boolean; onChoose: (cursor: string) => void }) => {
  const { entry, count } = row
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
      <span className={`w-32 shrink-0 ${lookOf(entry)}`}>
        {event.type}
        {count > 1 && ` ×${count.toLocaleString('en')}`}
      </span>
      <span className="min-w-0 grow truncate text-soft">{summaryOf(event)}</span>
      <span className="shrink-0 text-faint">{size(row.size)}</span>
    </button>
  )
})

function lookOf({ event }: Entry): string {
  if ('error' in event && event.error) return 'text-bad'
  if (event.type.startsWith('turn.')) return 'text-accent'
  if (event.type === 'message.delta') return 'text-soft'
  return event.type.startsWith('message.') ? 'text-good' : 'text-warn'
}
