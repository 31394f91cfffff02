/** What failed lately, each reason once. */
import { useClient } from '@rivulet/client/react'
import { Link } from '../shell/elements/link.tsx'
import { PageFrame, PeriodChoice, periodIn, Table } from '../shell/elements/page-frame.tsx'
import { useNow } from '../shell/hooks/use-now.ts'
import { age, count } from '../shell/human-units.ts'
import { usePolled } from '../shell/queries.ts'
import { taskPath, useQuery } from '../shell/route.ts'

export function ErrorsPage() {
  const client = useClient()
  const [chosen, setChosen] = useQuery('minutes')
  const minutes = periodIn(chosen, 1_440)
  const state = usePolled(['errors', minutes], signal => client.agents.errors(minutes, { signal }), 10_000)
  const now = useNow(10_000)
  const groups = state.value ?? []
  return (
    <PageFrame title="Errors" state={state} beside={<PeriodChoice minutes={minutes} onChange={setChosen} />}>
      {state.value && (
        <Table
          caption="Failed turns, grouped by their reason"
          columns={['Reason', 'Agent', 'Turns', 'Tasks', 'First', 'Last']}
          empty={groups.length === 0 ? 'No turn failed in this time.' : null}
        >
          {groups.map(({ fingerprint, agent, code, message, count: turns, tasks, firstAt, lastAt, lastTask }) => (
            <tr key={fingerprint}>
              <td className="min-w-64">
                <Link to={`/?fingerprint=${fingerprint}`} className="font-medium text-bad hover:underline [overflow-wrap:anywhere]">
                  {message || code}
                </Link>
                <span className="block font-mono text-xs text-faint">{code}</span>
              </td>
              <td>
                <Link to={`/?agent=${encodeURIComponent(agent)}&fingerprint=${fingerprint}`} className="hover:underline">
                  {agent}
                </Link>
              </td>
              <td className="tabular-nums">{count(turns)}</td>
              <td className="whitespace-nowrap tabular-nums">
                {count(tasks)}{' '}
                <Link to={taskPath(lastTask)} className="relative text-accent hover:underline">
                  latest<span className="sr-only"> task of {message || code}</span>
                </Link>
              </td>
              <td className="whitespace-nowrap text-soft">{age(now - Date.parse(firstAt))}</td>
              <td className="whitespace-nowrap text-soft">{age(now - Date.parse(lastAt))}</td>
            </tr>
          ))}
        </Table>
      )}
    </PageFrame>
  )
}
