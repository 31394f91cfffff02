/** The workers: what they serve, what they run, and whether they are heard of. */
import type { Worker, WorkerVersion } from '@rivulet/client'
import { useClient } from '@rivulet/client/react'
import { Link } from '../shell/elements/link.tsx'
import { PageFrame, Table } from '../shell/elements/page-frame.tsx'
import { useNow } from '../shell/hooks/use-now.ts'
import { age, duration } from '../shell/human-units.ts'
import { usePolled } from '../shell/queries.ts'
import { taskPath } from '../shell/route.ts'

/** Longer than the time between two heartbeats. */
const silentMs = 8_000

export function WorkersPage() {
  const client = useClient()
  const state = usePolled(['workers'], signal => client.agents.workers({ signal }), 2_000)
  const versions = usePolled(['versions'], signal => client.agents.versions({ signal }), 5_000).value ?? []
  const now = useNow(1_000)
  const workers = state.value ?? []
  return (
    <PageFrame title="Workers" state={state}>
      {state.value && (
        <Table
          caption="Workers of the last day"
          columns={['Worker', 'State', 'Version', 'Slots', 'Agents', 'Running', 'Last heartbeat']}
          empty={workers.length === 0 ? 'No worker was heard of in the last day.' : null}
        >
          {workers.map(worker => (
            <WorkerRow key={worker.id} worker={worker} now={now} sinceMs={worker.silentMs + Math.max(0, now - state.updatedAt)} />
          ))}
        </Table>
      )}
      {versions.length > 0 && (
        <Table caption="Versions" columns={['Version', 'Workers', 'Queued', 'Running', 'Waiting', 'State']} empty={null}>
          {versions.map(version => (
            <VersionRow key={version.version} version={version} />
          ))}
        </Table>
      )}
    </PageFrame>
  )
}

/** How many turns are left that workers of a version began. */
function VersionRow({ version: { version, workers, queued, running, waiting, isDrained } }: { version: WorkerVersion }) {
  return (
    <tr>
      <td className="font-mono text-xs [overflow-wrap:anywhere]">{version}</td>
      {Object.entries({ workers, queued, running, waiting }).map(([name, count]) => (
        <td key={name} className="text-soft tabular-nums">
          {count}
        </td>
      ))}
      <td className={`whitespace-nowrap ${isDrained ? 'text-good' : 'text-soft'}`}>{isDrained ? 'drained' : 'has turns'}</td>
    </tr>
  )
}

function WorkerRow({ worker, now, sinceMs }: { worker: Worker; now: number; sinceMs: number }) {
  const { id, version, slots, agents, isLive, seenAt, turns } = worker
  const isSilent = !isLive || sinceMs > silentMs
  return (
    <tr>
      <td className="max-w-64 font-mono text-xs [overflow-wrap:anywhere]">{id}</td>
      <td className="whitespace-nowrap">
        <span className={`inline-flex items-center gap-2 ${isSilent ? (isLive ? 'text-warn' : 'text-bad') : 'text-good'}`}>
          <span className={`size-2 rounded-full ${isSilent ? (isLive ? 'bg-warn' : 'bg-bad') : 'bg-good'}`} />
          {isSilent ? `silent for ${duration(Math.round(sinceMs / 1_000) * 1_000)}` : 'live'}
        </span>
      </td>
      <td className="whitespace-nowrap text-soft">{version ?? '–'}</td>
      <td className="whitespace-nowrap text-soft tabular-nums">{slots === undefined ? '–' : `${turns.length} of ${slots}`}</td>
      <td className="min-w-40 text-soft">{agents.join(', ')}</td>
      <td className="min-w-40">
        {turns.length === 0 && <span className="text-faint">nothing</span>}
        {turns.map(({ task, turn, agent, startedAt }) => (
          <Link key={`${task} ${turn}`} to={taskPath(task)} className="block text-accent hover:underline">
            {agent}, turn {turn}, for {duration(Math.max(0, now - Date.parse(startedAt)))}
          </Link>
        ))}
      </td>
      <td className="whitespace-nowrap text-soft tabular-nums">{age(now - Date.parse(seenAt))}</td>
    </tr>
  )
}
