/** Activity as series over time, without holes: where nothing ended there is a zero. */
import type { Activity } from '@rivulet/client'

export type Series = { at: number[]; perMinute: number[]; failed: number[]; runMs: (number | null)[]; waitMs: (number | null)[] }

/** @param agent null for all of them */
export function seriesOf({ from, to, bucketMs, data }: Activity, agent: string | null): Series {
  const byTime = new Map(data.filter(row => row.agent === agent).map(row => [Date.parse(row.at), row]))
  const series: Series = { at: [], perMinute: [], failed: [], runMs: [], waitMs: [] }
  const scale = 60_000 / bucketMs
  for (let at = Date.parse(from); at < Date.parse(to); at += bucketMs) {
    const row = byTime.get(at)
    series.at.push(at)
    series.perMinute.push(row ? (row.completed + row.failed + row.canceled) * scale : 0)
    series.failed.push(row?.failed ?? 0)
    series.runMs.push(row?.runMs ?? null)
    series.waitMs.push(row?.waitMs ?? null)
  }
  return series
}

/** What happened in all of the time, for one agent. */
export function totalsOf({ data }: Activity, agent: string | null): { completed: number; failed: number; canceled: number } {
  const rows = data.filter(row => row.agent === agent)
  const sum = (name: 'completed' | 'failed' | 'canceled') => rows.reduce((total, row) => total + row[name], 0)
  return { completed: sum('completed'), failed: sum('failed'), canceled: sum('canceled') }
}
