/** The agents, their workers and queues, and their recent throughput. */
import type { Agent, AgentLimits } from '@rivulet/client'
import { useClient } from '@rivulet/client/react'
import { lazy, type ReactNode, Suspense, useState } from 'react'
import { Button } from '../shell/elements/button.tsx'
import { Link } from '../shell/elements/link.tsx'
import { StaleNote } from '../shell/elements/stale-note.tsx'
import { usePageTitle } from '../shell/hooks/use-page-title.ts'
import { count, duration } from '../shell/human-units.ts'
import { usePolled } from '../shell/queries.ts'
import { useQuery } from '../shell/route.ts'
import { useSession } from '../shell/session.tsx'
import { type Series, seriesOf, totalsOf } from './activity-series.ts'
import { AgentActions, limitWords } from './agent-actions.tsx'
import { AgentAddresses } from './agent-addresses.tsx'
import { Bars, Line, Plot } from './plot.tsx'
import { useAgents } from './use-agents.ts'

const NewTaskDialog = lazy(async () => ({ default: (await import('../tasks/new-task-dialog.tsx')).NewTaskDialog }))

const minutes = 10
const figures = ['Agent', 'Workers', 'Queued', 'Running', 'Completed', 'Failed']

export function AgentsPage() {
  usePageTitle('Agents')
  const client = useClient()
  const { agents, error, updatedAt } = useAgents()
  const [chosen, setChosen] = useQuery('agent')
  const { value: activity } = usePolled(['activity', minutes], signal => client.agents.activity(minutes, { signal }), 5_000)
  const series = activity && seriesOf(activity, chosen)
  const { may } = useSession()
  const isAdmin = may('admin')
  const mayStart = may('tasks:write')
  const [started, setStarted] = useState<string | null>(null)
  const columns = isAdmin || mayStart ? [...figures, 'Actions'] : figures
  const { value: limits, refresh } = usePolled(['limits'], signal => client.limits.list({ signal }), 10_000)
  return (
    <div className="h-full overflow-y-auto">
      <div className="mx-auto max-w-5xl px-4 py-4 sm:px-6">
        <h1 className="text-lg font-semibold tracking-tight">Agents and queues</h1>
        <StaleNote error={error} updatedAt={updatedAt} className="mt-3" />
        <label className="mt-4 flex items-center gap-2 text-soft">
          The last {minutes} minutes of
          <select
            value={chosen ?? ''}
            onChange={event => setChosen(event.target.value || null)}
            className="rounded-lg border border-line bg-panel px-2 py-1 text-ink"
          >
            <option value="">all agents</option>
            {agents.map(({ name }) => (
              <option key={name}>{name}</option>
            ))}
          </select>
        </label>
        <div className="mt-3 grid gap-4 md:grid-cols-3">{series && <Plots series={series} />}</div>
        <div className="mt-6 overflow-x-auto rounded-xl border border-line bg-panel">
          <table className="w-full text-left">
            <caption className="sr-only">Agents, with the work of the last {minutes} minutes</caption>
            <thead>
              <tr className="border-b border-line text-xs text-faint">
                {columns.map((name, place) => (
                  <th key={name} scope="col" className={`px-4 py-2 font-normal ${place > 0 ? 'text-right' : ''}`}>
                    {name}
                  </th>
                ))}
              </tr>
            </thead>
            <tbody>
              {agents.map(agent => (
                <AgentRow
                  key={agent.name}
                  agent={agent}
                  limits={limits?.find(({ agent: name }) => name === agent.name) ?? null}
                  totals={activity ? totalsOf(activity, agent.name) : null}
                >
                  {(isAdmin || mayStart) && (
                    <div className="flex items-center justify-end gap-1">
                      {mayStart && (
                        <Button aria-label={`Start ${agent.name}`} onClick={() => setStarted(agent.name)}>
                          Start
                        </Button>
                      )}
                      {isAdmin && <AgentActions agent={agent} limits={limits ?? []} onChange={refresh} />}
                    </div>
                  )}
                </AgentRow>
              ))}
            </tbody>
          </table>
          {agents.length === 0 && !error && <p className="px-4 py-8 text-center text-soft">No worker has registered yet.</p>}
        </div>
      </div>
      <Suspense>
        {started !== null && <NewTaskDialog agents={agents} given={{ agent: started }} onClose={() => setStarted(null)} />}
      </Suspense>
    </div>
  )
}

type AgentRowProps = { agent: Agent; limits: AgentLimits | null; totals: ReturnType<typeof totalsOf> | null; children: ReactNode }

function AgentRow({ agent, limits, totals, children }: AgentRowProps) {
  const { name, description, paused, workers, queued, running } = agent
  const cell = 'px-4 py-3 text-right tabular-nums'
  return (
    <tr className="border-b border-line last:border-0">
      <th scope="row" className="min-w-56 px-4 py-3 font-normal">
        <Link to={`/?agent=${encodeURIComponent(name)}`} className="font-medium hover:underline">
          {name}
        </Link>
        {paused && <span className="ml-2 rounded-full bg-warn-well px-2 py-0.5 text-xs font-medium text-warn">paused</span>}
        <span className="block text-[13px] text-soft">{description}</span>
        {limits && <span className="block text-xs text-faint">{limitWords(limits)}</span>}
        <AgentAddresses name={name} />
      </th>
      <td className={`${cell} ${workers === 0 ? 'text-warn' : ''}`}>{workers === 0 ? 'none' : workers}</td>
      <td className={cell}>{count(queued)}</td>
      <td className={`${cell} ${running > 0 ? 'text-accent' : ''}`}>{count(running)}</td>
      <td className={cell}>{totals ? count(totals.completed) : ''}</td>
      <td className={`${cell} ${totals && totals.failed > 0 ? 'text-bad' : ''}`}>{totals ? count(totals.failed) : ''}</td>
      {children && <td className="px-4 py-2 text-right">{children}</td>}
    </tr>
  )
}

function Plots({ series: { at, perMinute, failed, runMs, waitMs } }: { series: Series }) {
  const busiest = Math.max(1, ...perMinute)
  const mostFailed = Math.max(1, ...failed)
  const slowest = Math.max(1, ...runMs.map(ms => ms ?? 0), ...waitMs.map(ms => ms ?? 0))
  const latest = (values: readonly (number | null)[]) => values.findLast(value => value !== null) ?? null
  const now = latest(runMs)
  const failures = failed.reduce((sum, value) => sum + value, 0)
  return (
    <>
      <Plot
        title="Turns per minute"
        value={count(Math.round(perMinute.at(-2) ?? 0))}
        at={at}
        most={busiest}
        mostLabel={count(Math.round(busiest))}
      >
        {scale => <Bars values={perMinute} scale={scale} look="fill-accent" />}
      </Plot>
      <Plot
        title="Latency: run (line), wait (pale)"
        value={now === null ? '–' : duration(now)}
        at={at}
        most={slowest}
        mostLabel={duration(slowest)}
      >
        {scale => (
          <>
            <Line values={waitMs} scale={scale} look="stroke-line-strong" />
            <Line values={runMs} scale={scale} look="stroke-accent" />
          </>
        )}
      </Plot>
      <Plot title="Failed turns" value={count(failures)} at={at} most={mostFailed} mostLabel={count(mostFailed)}>
        {scale => <Bars values={failed} scale={scale} look="fill-bad" />}
      </Plot>
    </>
  )
}
