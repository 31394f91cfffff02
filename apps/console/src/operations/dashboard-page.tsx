/** How the work goes: the queue, the wait and the throughput over time, from the rows of the turns. */
import type { Activity } from '@rivulet/client'
import { useClient } from '@rivulet/client/react'
import { useMemo } from 'react'
import { PageFrame, PeriodChoice, periodIn } from '../shell/elements/page-frame.tsx'
import { count, duration } from '../shell/human-units.ts'
import { usePolled } from '../shell/queries.ts'
import { useQuery } from '../shell/route.ts'
import { Chart } from './chart.tsx'
import { type Fact, FactTiles } from './fact-tiles.tsx'

export function DashboardPage() {
  const client = useClient()
  const [chosen, setChosen] = useQuery('minutes')
  const minutes = periodIn(chosen, 60)
  const state = usePolled(['activity', minutes], signal => client.agents.activity(minutes, { signal }), minutes <= 60 ? 5_000 : 30_000)
  return (
    <PageFrame title="Dashboard" state={state} beside={<PeriodChoice minutes={minutes} onChange={setChosen} />}>
      {state.value && <Charts activity={state.value} />}
    </PageFrame>
  )
}

function Charts({ activity }: { activity: Activity }) {
  const { times, depth, wait, slowWait, done, failed } = useMemo(() => seriesOf(activity), [activity])
  const last = depth.at(-1) ?? 0
  const ended = sum(done) + sum(failed)
  const slowest = Math.max(0, ...slowWait.map(ms => ms ?? 0))
  const facts: Fact[] = [
    ['Queued now', count(last)],
    ['Turns ended', count(Math.round(ended))],
    ['Failed', count(Math.round(sum(failed)))],
    ['Longest wait, p95', slowest > 0 ? duration(slowest) : '–'],
  ]
  return (
    <>
      <FactTiles facts={facts} />
      <div className="mt-4 space-y-4">
        <Chart
          title="Queue depth"
          summary={`${last} turns wait now, at most ${Math.max(0, ...depth)}`}
          times={times}
          lines={[{ name: 'queued', color: '--color-accent', values: depth, isArea: true }]}
          format={value => count(Math.round(value))}
          isWhole
        />
        <Chart
          title="Wait before a turn starts"
          summary={slowest > 0 ? `at most ${duration(slowest)} for 95 of 100 turns` : 'no turn started'}
          times={times}
          lines={[
            { name: 'p50', color: '--color-accent', values: wait },
            { name: 'p95', color: '--color-warn', values: slowWait },
          ]}
          format={duration}
        />
        <Chart
          title="Turns that ended"
          summary={`${Math.round(ended)} in all, ${Math.round(sum(failed))} of them failed`}
          times={times}
          lines={[
            { name: 'ended', color: '--color-good', values: done, isArea: true },
            { name: 'failed', color: '--color-bad', values: failed },
          ]}
          format={value => count(Math.round(value))}
          isWhole
        />
      </div>
    </>
  )
}

function seriesOf({ from, bucketMs, queued, data }: Activity) {
  const rows = new Map(data.filter(({ agent }) => agent === null).map(row => [Date.parse(row.at), row]))
  const starts = queued.map((_, place) => Date.parse(from) + place * bucketMs)
  return {
    times: starts.map(at => at / 1_000),
    depth: queued,
    wait: starts.map(at => rows.get(at)?.waitMs ?? null),
    slowWait: starts.map(at => rows.get(at)?.slowWaitMs ?? null),
    done: starts.map(at => (rows.get(at)?.completed ?? 0) + (rows.get(at)?.canceled ?? 0)),
    failed: starts.map(at => rows.get(at)?.failed ?? 0),
  }
}

function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0)
}
