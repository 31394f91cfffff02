/** Values over time, with axes, and the values of the moment under the pointer. */
import { useEffect, useRef } from 'react'
import uPlot from 'uplot'
import 'uplot/dist/uPlot.min.css'
import { useIsDark } from '../shell/theme.ts'

export type Line = { name: string; color: string; values: readonly (number | null)[]; isArea?: boolean }

type ChartProps = {
  title: string
  /** In words, for people who cannot see the lines. */
  summary: string
  /** In seconds since 1970. */
  times: readonly number[]
  lines: readonly Line[]
  format: (value: number) => string
  /** Counts: the axis has no fractions. */
  isWhole?: boolean
  /** The times are days, which begin in UTC wherever the reader is. */
  isByDay?: boolean
}

const heightPx = 180
const wholeSteps = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1_000, 2_000, 5_000, 10_000, 20_000, 50_000, 100_000]

export function Chart({ title, summary, times, lines, format, isWhole = false, isByDay = false }: ChartProps) {
  const root = useRef<HTMLDivElement>(null)
  const plot = useRef<uPlot | null>(null)
  const isDark = useIsDark()
  const shape = lines.map(({ name, color }) => `${name} ${color}`).join()
  const latest = useRef({ times, lines, format })
  latest.current = { times, lines, format }

  // biome-ignore lint/correctness/useExhaustiveDependencies: drawn anew where its lines are others, or their colours; new values are set below
  useEffect(() => {
    const element = root.current
    if (!element) return
    const look = (name: string) => getComputedStyle(document.documentElement).getPropertyValue(name)
    const resolved = (name: string) => {
      element.style.color = `var(${name})`
      const { color } = getComputedStyle(element)
      element.style.color = ''
      return color || look(name)
    }
    const axis = {
      stroke: resolved('--color-soft'),
      grid: { stroke: resolved('--color-line'), width: 1 },
      ticks: { show: false },
      font: '12px system-ui',
    }
    const options: uPlot.Options = {
      width: element.clientWidth,
      height: heightPx,
      padding: [8, 8, 0, 0],
      ...(isByDay && { tzDate: at => uPlot.tzDate(new Date(at * 1_000), 'Etc/UTC') }),
      cursor: { points: { size: 6 }, drag: { x: false, y: false } },
      scales: { y: { range: (_, __, most) => [0, isWhole ? Math.max(1, most * 1.1) : most * 1.1 || 1] } },
      axes: [
        axis,
        {
          ...axis,
          size: 64,
          ...(isWhole && { incrs: wholeSteps }),
          values: (_, values) => values.map(value => latest.current.format(value)),
        },
      ],
      series: [
        { value: (_, at) => (at === null ? '' : momentOf(at, isByDay)) },
        ...lines.map(({ name, color, isArea }) => ({
          label: name,
          stroke: resolved(color),
          width: 1.5,
          ...(isArea && { fill: `color-mix(in srgb, ${resolved(color)} 18%, transparent)` }),
          spanGaps: true,
          points: { show: false },
          value: (_: uPlot, value: number | null) => (value === null ? '–' : latest.current.format(value)),
        })),
      ],
    }
    const drawn = new uPlot(options, dataOf(latest.current), element)
    plot.current = drawn
    const resized = new ResizeObserver(() => drawn.setSize({ width: element.clientWidth, height: heightPx }))
    resized.observe(element)
    return () => {
      resized.disconnect()
      drawn.destroy()
    }
  }, [shape, isDark])

  useEffect(() => plot.current?.setData(dataOf({ times, lines })), [times, lines])

  return (
    <figure className="rounded-xl border border-line bg-panel p-4">
      <figcaption className="mb-2 font-medium">{title}</figcaption>
      <div ref={root} role="img" aria-label={`${title}: ${summary}`} className="min-h-56 overflow-hidden text-[13px]" />
    </figure>
  )
}

function momentOf(at: number, isByDay: boolean): string {
  const date = new Date(at * 1_000)
  if (isByDay) return date.toLocaleDateString('en-GB', { dateStyle: 'short', timeZone: 'UTC' })
  return date.toLocaleString('en-GB', { dateStyle: 'short', timeStyle: 'short' })
}

function dataOf({ times, lines }: Pick<ChartProps, 'times' | 'lines'>): uPlot.AlignedData {
  return [[...times], ...lines.map(({ values }) => [...values])]
}
