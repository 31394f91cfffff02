/** A value over the last minutes: bars for what is counted, dots and a line for what is measured. */
import type { ReactNode } from 'react'

const width = 400
const height = 96

type PlotProps = {
  title: string
  /** The latest value, in words. */
  value: string
  at: readonly number[]
  children: (scale: Scale) => ReactNode
  most: number
  mostLabel: string
}

type Scale = { x(place: number): number; y(value: number): number; step: number; height: number }

export function Plot({ title, value, at, most, mostLabel, children }: PlotProps) {
  const step = width / Math.max(1, at.length)
  const scale: Scale = {
    x: place => place * step,
    y: amount => height - (Math.min(amount, most) / Math.max(most, 1e-9)) * height,
    step,
    height,
  }
  const minutes = Math.round(((at.at(-1) ?? 0) - (at[0] ?? 0)) / 60_000)
  return (
    <figure className="rounded-xl border border-line bg-panel p-4">
      <figcaption className="flex items-baseline justify-between">
        <span className="text-soft">{title}</span>
        <span className="text-base font-semibold tabular-nums">{value}</span>
      </figcaption>
      <svg
        role="img"
        aria-label={`${title} over the last ${minutes} minutes: ${value} now, at most ${mostLabel}`}
        viewBox={`0 0 ${width} ${height}`}
        preserveAspectRatio="none"
        className="mt-3 h-24 w-full border-b border-line"
      >
        <line x1="0" x2={width} y1="0.5" y2="0.5" className="stroke-line" strokeDasharray="3 4" vectorEffect="non-scaling-stroke" />
        {children(scale)}
      </svg>
      <div aria-hidden="true" className="mt-1 flex justify-between text-xs text-faint">
        <span>{minutes} min ago</span>
        <span>top: {mostLabel}</span>
        <span>now</span>
      </div>
    </figure>
  )
}

export function Bars({ values, scale, look }: { values: readonly number[]; scale: Scale; look: string }) {
  return values.map((value, place) =>
    value > 0 ? (
      <rect
        // biome-ignore lint/suspicious/noArrayIndexKey: a bucket is its place in time
        key={place}
        x={scale.x(place) + scale.step * 0.15}
        width={scale.step * 0.7}
        y={scale.y(value)}
        height={scale.height - scale.y(value)}
        className={look}
      />
    ) : null,
  )
}

/** Where nothing was measured the line has a gap. */
export function Line({ values, scale, look }: { values: readonly (number | null)[]; scale: Scale; look: string }) {
  const path = values
    .map((value, place) => {
      if (value === null) return ''
      const isFirst = values[place - 1] === null || place === 0
      const isAlone = isFirst && (values[place + 1] ?? null) === null
      const [x, y] = [scale.x(place) + scale.step / 2, scale.y(value)]
      return `${isFirst ? 'M' : 'L'}${x.toFixed(1)} ${y.toFixed(1)}${isAlone ? 'h1' : ''}`
    })
    .join('')
  return (
    <path
      d={path}
      fill="none"
      strokeWidth="2"
      strokeLinecap="round"
      strokeLinejoin="round"
      vectorEffect="non-scaling-stroke"
      className={look}
    />
  )
}
