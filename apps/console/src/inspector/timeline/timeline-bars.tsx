/** Turns, attempts, steps, messages, tools, waits and children over time. Each bar leads to the event that began it, or to its message where the log has expired. */
import { memo } from 'react'
import { duration } from '../../shell/human-units.ts'
import type { Bar } from './bar.ts'
import type { Timeline } from './timeline.ts'

export type TimelineBarsProps = { timeline: Timeline; chosen: string | null; onChoose: (bar: Bar) => void }

export const TimelineBars = memo(({ timeline: { from, to, bars }, chosen, onChoose }: TimelineBarsProps) => {
  const span = Math.max(1, to - from)
  return (
    <ol aria-label="Timeline" className="min-h-0 grow space-y-1 overflow-y-auto px-4 py-2">
      {bars.map((bar, place) => {
        const end = bar.to ?? to
        const name = `${bar.label}, ${duration(end - bar.from)}, ${outcomeWords[bar.outcome]}`
        return (
          // biome-ignore lint/suspicious/noArrayIndexKey: a bar is little, and few are added before others
          <li key={`${place} ${bar.label}`} className="flex items-center gap-2 text-xs">
            <span title={bar.label} className={`w-28 shrink-0 truncate ${indents[bar.kind]}`}>
              {bar.label}
            </span>
            <span className="relative h-4 min-w-0 grow">
              <button
                type="button"
                aria-label={name}
                title={name}
                onClick={() => onChoose(bar)}
                className={`absolute inset-y-0.5 min-w-1 rounded-sm ${looks[bar.outcome]} ${chosen !== null && bar.cursor === chosen ? 'ring-2 ring-ink' : ''}`}
                style={{ left: `${((bar.from - from) / span) * 100}%`, width: `${((end - bar.from) / span) * 100}%` }}
              />
            </span>
            <span className="w-14 shrink-0 text-right text-faint tabular-nums">{duration(end - bar.from)}</span>
          </li>
        )
      })}
    </ol>
  )
})

const indents: Record<Bar['kind'], string> = {
  turn: 'font-medium',
  attempt: 'pl-2 text-soft',
  step: 'pl-3 text-soft italic',
  message: 'pl-4 text-faint',
  tool: 'pl-4 text-warn',
  wait: 'pl-3 text-warn',
  child: 'pl-3 text-accent',
}
const looks: Record<Bar['outcome'], string> = {
  open: 'bg-accent breathing',
  good: 'bg-accent/70',
  bad: 'bg-bad',
  stopped: 'bg-line-strong',
}
const outcomeWords: Record<Bar['outcome'], string> = { open: 'goes on', good: 'complete', bad: 'failed', stopped: 'stopped' }
