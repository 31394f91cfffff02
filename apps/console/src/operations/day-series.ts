/** A report by day as the lines of a chart. A day without a response has no group in the report, and is zero here. */
import type { UsageReport } from '@rivulet/client'

const dayMs = 86_400_000

type DaySeries = Record<'times' | 'input' | 'output' | 'cost', number[]>

export function daySeries({ from, to, data }: UsageReport): DaySeries {
  const days = new Map(data.map(row => [row.group, row]))
  const series: DaySeries = { times: [], input: [], output: [], cost: [] }
  const first = Math.floor(Date.parse(from) / dayMs) * dayMs
  for (let at = first; at < Date.parse(to); at += dayMs) {
    const row = days.get(new Date(at).toISOString().slice(0, 10))
    series.times.push(at / 1_000)
    series.input.push(row?.usage.inputTokens ?? 0)
    series.output.push(row?.usage.outputTokens ?? 0)
    series.cost.push(row?.cost ?? 0)
  }
  return series
}
