/** Turns, attempts, messages and tools over time. Each bar leads to the event that began it. */
import { useMemo } from 'react'
import { duration } from '../shell/human-units.ts'
import type { Entry } from './event-log.ts'
import { type Bar, timelineOf } from './timeline.ts'

export function TimelineBars({
  entries,
  chosen,
  onChoose,
}: {
  entries: readonly Entry[]
  chosen: string | null
  onChoose: (cursor: string) => void
}) {
  const { from, to, bars } = useMemo(() => timelineOf(entries), [entries])
  const span = Math.max(1, to - from)
  if (bars.length === 0) return null
  return (
    <ol aria-label="Timeline" className="max-h-44 shrink-0 space-y-1 overflow-y-auto border-t border-line px-4 py-2">
      {bars.map(bar => {
        const end = bar.to ?? to
        const name = `${bar.label}, ${duration(end - bar.from)}, ${outcomeWords[bar.outcome]}`
        return (
          <li key={bar.cursor + bar.kind} className="flex items-center gap-2 text-xs">
            <span className={`w-28 shrink-0 truncate ${indents[bar.kind]}`}>{bar.label}</span>
            <span className="relative h-4 min-w-0 grow">
              <button
                type="button"
                aria-label={name}
                title={name}
                onClick={() => onChoose(bar.cursor)}
                className={`absolute inset-y-0.5 min-w-1 rounded-sm ${looks[bar.outcome]} ${bar.cursor === chosen ? 'ring-2 ring-ink' : ''}`}
                style={{ left: `${((bar.from - from) / span) * 100}%`, width: `${((end - bar.from) / span) * 100}%` }}
              />
            </span>
            <span className="w-14 shrink-0 text-right text-faint tabular-nums">{duration(end - bar.from)}</span>
          </li>
        )
      })}
    </ol>
  )
}

const indents: Record<Bar['kind'], string> = {
  turn: 'font-medium',
  attempt: 'pl-2 text-soft',
  message: 'pl-4 text-faint',
  tool: 'pl-4 text-warn',
}
const looks: Record<Bar['outcome'], string> = {
  open: 'bg-accent breathing',
  good: 'bg-accent/70',
  bad: 'bg-bad',
  stopped: 'bg-line-strong',
}
const outcomeWords: Record<Bar['outcome'], string> = { open: 'goes on', good: 'complete', bad: 'failed', stopped: 'stopped' }
