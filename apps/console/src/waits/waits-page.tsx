/** What turns wait for people to decide, oldest first: the inbox of the tenant, and what became of earlier questions. */
import type { Wait, WaitKind, WaitStatus } from '@rivulet/client'
import { useAgents } from '../agents/use-agents.ts'
import { Button } from '../shell/elements/button.tsx'
import { Link } from '../shell/elements/link.tsx'
import { PageFrame, Table } from '../shell/elements/page-frame.tsx'
import { Choice } from '../shell/forms/choice.tsx'
import { useNow } from '../shell/hooks/use-now.ts'
import { age } from '../shell/human-units.ts'
import { taskPath, useQuery } from '../shell/route.ts'
import { Inbox } from './inbox.tsx'
import { useWaits } from './use-waits.ts'
import { kindWords, outcomeOf } from './wait-words.ts'

const kinds = Object.keys(kindWords) as WaitKind[]
const closed = ['answered', 'expired', 'canceled'] as const satisfies WaitStatus[]

export function WaitsPage() {
  const { agents } = useAgents()
  const [kindText, setKind] = useQuery('kind')
  const [agent, setAgent] = useQuery('agent')
  const [assignee, setAssignee] = useQuery('assignee')
  const [statusText, setStatus] = useQuery('status')
  const [cursor, setCursor] = useQuery('after')
  const kind = kinds.find(known => known === kindText)
  const status = closed.find(known => known === statusText)
  const filter = { ...(kind && { kind }), ...(status && { status }), ...(agent && { agent }), ...(assignee && { assignee }) }
  const state = useWaits({ ...filter, ...(cursor && { cursor }) })
  const now = useNow(10_000)
  const waits = state.value?.data ?? []
  const next = state.value?.nextCursor ?? null
  return (
    <PageFrame
      title="Waiting for people"
      count={status ? 0 : waits.length}
      state={state}
      beside={
        <>
          <Choice label="Kind" value={kind ?? null} options={kinds} none="What people answer" onChange={only(setKind)} />
          <Choice label="Agent" value={agent} options={agents.map(({ name }) => name)} onChange={only(setAgent)} />
          <Choice label="Status" value={status ?? null} options={closed} none="open" onChange={only(setStatus)} />
          <label>
            <span className="sr-only">Assignee</span>
            <input
              value={assignee ?? ''}
              placeholder="Any assignee"
              onChange={event => only(setAssignee)(event.target.value)}
              className="w-36 rounded-lg border border-line bg-panel px-3 py-1.5 placeholder:text-faint"
            />
          </label>
        </>
      }
    >
      {state.value && !status && <Inbox waits={waits} refresh={state.refresh} />}
      {state.value && status && (
        <Table
          caption="Waits"
          columns={['Question', 'Agent', 'Kind', 'Assignee', 'Asked', 'Outcome', 'Task']}
          empty={waits.length === 0 ? 'No wait matches the filters.' : null}
        >
          {waits.map(wait => (
            <WaitLine key={wait.id} wait={wait} now={now} />
          ))}
        </Table>
      )}
      {(cursor || next) && (
        <p className="mt-3 flex gap-2">
          {cursor && <Button onClick={() => setCursor(null)}>First page</Button>}
          {next && <Button onClick={() => setCursor(next)}>Next page</Button>}
        </p>
      )}
    </PageFrame>
  )

  /** Another filter begins with its first page. */
  function only(set: (value: string | null) => void): (value: string | null) => void {
    return value => {
      set(value)
      setCursor(null)
    }
  }
}

function WaitLine({ wait, now }: { wait: Wait; now: number }) {
  const { title, agent, kind, assignee, createdAt, task } = wait
  return (
    <tr>
      <td className="min-w-48 font-medium [overflow-wrap:anywhere]">{title}</td>
      <td>{agent}</td>
      <td className="whitespace-nowrap text-soft">{kindWords[kind]}</td>
      <td className="text-soft">{assignee ?? ''}</td>
      <td className="whitespace-nowrap text-soft">{age(now - Date.parse(createdAt))}</td>
      <td className="whitespace-nowrap text-soft">
        {[outcomeOf(wait), wait.answer?.by && `by ${wait.answer.by}`].filter(Boolean).join(' ')}
      </td>
      <td>
        <Link to={taskPath(task)} className="relative text-accent hover:underline">
          Open<span className="sr-only"> the task of {title}</span>
        </Link>
      </td>
    </tr>
  )
}
