/** A page that scrolls: its title, what stands beside it, and whether it is up to date. */
import type { ReactNode } from 'react'
import { usePageTitle } from '../hooks/use-page-title.ts'
import { StaleNote } from './stale-note.tsx'

type PageFrameProps = {
  title: string
  /** How many things wait for the reader, in the title of the browser's tab. */
  count?: number
  beside?: ReactNode
  state: { value: unknown; error: string | null; updatedAt: number }
  children: ReactNode
}

export function PageFrame({ title, count = 0, beside, state: { value, error, updatedAt }, children }: PageFrameProps) {
  usePageTitle(count > 0 ? `(${count}) ${title}` : title)
  return (
    <div className="h-full overflow-y-auto">
      <div className="mx-auto max-w-5xl px-4 py-4 sm:px-6">
        <header className="flex flex-wrap items-center gap-3">
          <h1 className="grow text-lg font-semibold tracking-tight">{title}</h1>
          {beside}
        </header>
        <StaleNote error={error} updatedAt={updatedAt} className="mt-3" />
        {value === null && !error && <p className="mt-4 text-soft">Loading …</p>}
        {children}
      </div>
    </div>
  )
}

/** A table that scrolls by itself where it is wider than the page. */
export function Table({
  caption,
  columns,
  children,
  empty,
}: {
  caption: string
  columns: readonly string[]
  children: ReactNode
  empty: string | null
}) {
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls has to be reachable by keyboard
    <section tabIndex={0} aria-label={caption} className="mt-4 overflow-x-auto rounded-xl border border-line bg-panel">
      <table className="w-full text-left">
        <caption className="sr-only">{caption}</caption>
        <thead>
          <tr className="border-b border-line text-xs text-faint">
            {columns.map(name => (
              <th key={name} scope="col" className="px-4 py-2 font-normal whitespace-nowrap">
                {name}
              </th>
            ))}
          </tr>
        </thead>
        <tbody className="[&>tr]:border-b [&>tr]:border-line [&>tr:last-child]:border-0 [&_td]:px-4 [&_td]:py-2.5 [&_td]:align-top">
          {children}
        </tbody>
      </table>
      {empty && <p className="px-4 py-8 text-center text-soft">{empty}</p>}
    </section>
  )
}

type Period = { minutes: number; name: string }

export const periods: readonly Period[] = [
  { minutes: 60, name: '1 hour' },
  { minutes: 360, name: '6 hours' },
  { minutes: 1_440, name: '1 day' },
  { minutes: 10_080, name: '7 days' },
]

export function PeriodChoice({ minutes, onChange }: { minutes: number; onChange: (minutes: string) => void }) {
  return (
    <label className="flex items-center gap-2 text-soft">
      The last
      <select
        value={minutes}
        onChange={event => onChange(event.target.value)}
        className="rounded-lg border border-line bg-panel px-2 py-1 text-ink"
      >
        {periods.map(({ minutes, name }) => (
          <option key={minutes} value={minutes}>
            {name}
          </option>
        ))}
      </select>
    </label>
  )
}

export function periodIn(text: string | null, normal: number): number {
  return periods.find(({ minutes }) => String(minutes) === text)?.minutes ?? normal
}
