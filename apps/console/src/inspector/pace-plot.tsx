/** How fast the words came: the wait before the first, and deltas per second over time. */
import { memo, useMemo } from 'react'
import { duration } from '../shell/human-units.ts'
import type { Entry } from './event-log.ts'
import { paceOf } from './pace.ts'

const height = 36

export const PacePlot = memo(({ entries }: { entries: readonly Entry[] }) => {
  const { bucketMs, deltas, firstDeltas } = useMemo(() => paceOf(entries), [entries])
  const perSecond = deltas.map(number => (number * 1_000) / bucketMs)
  const most = Math.max(1, ...perSecond)
  const latest = firstDeltas.at(-1)
  return (
    <div className="flex items-end gap-5 px-4 py-3">
      <dl className="flex shrink-0 gap-5">
        <Fact name="First delta after" value={latest ? duration(latest.ms) : '–'} />
        <Fact name="Deltas/s, most" value={deltas.length > 0 ? String(Math.round(most)) : '–'} />
      </dl>
      <svg
        role="img"
        aria-label={`Deltas per second over time, at most ${Math.round(most)}`}
        viewBox={`0 0 ${Math.max(1, perSecond.length) * 4} ${height}`}
        preserveAspectRatio="none"
        className="h-9 min-w-0 grow border-b border-line"
      >
        {perSecond.map((value, place) => (
          <rect
            // biome-ignore lint/suspicious/noArrayIndexKey: a bucket is its place in time
            key={place}
            x={place * 4 + 0.5}
            width={3}
            y={height - (value / most) * height}
            height={(value / most) * height}
            className="fill-accent"
          />
        ))}
      </svg>
    </div>
  )
})

function Fact({ name, value }: { name: string; value: string }) {
  return (
    <div>
      <dt className="text-xs whitespace-nowrap text-faint">{name}</dt>
      <dd className="text-base font-medium tabular-nums">{value}</dd>
    </div>
  )
}
