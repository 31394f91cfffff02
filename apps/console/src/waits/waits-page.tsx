/** What turns wait for people to decide, oldest first: the inbox of the tenant. Each can be answered here, or in the transcript of its task. */
import type { Wait, WaitKind, WaitStatus } from '@rivulet/client'
import { useState } from 'react'
import { useAgents } from '../agents/use-agents.ts'
import { Button } from '../shell/elements/button.tsx'
import { Dialog } from '../shell/elements/dialog.tsx'
import { Link } from '../shell/elements/link.tsx'
import { PageFrame, Table } from '../shell/elements/page-frame.tsx'
import { Choice } from '../shell/forms/choice.tsx'
import { useNow } from '../shell/hooks/use-now.ts'
import { age, duration } from '../shell/human-units.ts'
import { taskPath, useQuery } from '../shell/route.ts'
import { useSession } from '../shell/session.tsx'
import { useAnswer } from './use-answer.ts'
import { peopleKinds, useWaits } from './use-waits.ts'
import { WaitForm } from './wait-form.tsx'
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
  const [chosen, setChosen] = useState<Wait | null>(null)
  const waits = state.value?.data ?? []
  const next = state.value?.nextCursor ?? null
  return (
    <PageFrame
      title="Waiting for people"
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
      {state.value && (
        <Table
          caption="Waits"
          columns={['Question', 'Agent', 'Kind', 'Assignee', 'Asked', status ? 'Outcome' : 'Expires', 'Task']}
          empty={waits.length === 0 ? (status ? 'No wait matches the filters.' : 'No turn waits for a person.') : null}
        >
          {waits.map(wait => (
            <WaitLine key={wait.id} wait={wait} now={now} onChoose={setChosen} />
          ))}
        </Table>
      )}
      {(cursor || next) && (
        <p className="mt-3 flex gap-2">
          {cursor && <Button onClick={() => setCursor(null)}>First page</Button>}
          {next && <Button onClick={() => setCursor(next)}>Next page</Button>}
        </p>
      )}
      {chosen && (
        <AnswerDialog
          wait={chosen}
          isOpen={waits.some(({ id }) => id === chosen.id)}
          onClose={() => {
            setChosen(null)
            state.refresh()
          }}
        />
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

function WaitLine({ wait, now, onChoose }: { wait: Wait; now: number; onChoose: (wait: Wait) => void }) {
  const { may } = useSession()
  const { title, agent, kind, assignee, createdAt, expiresAt, status, task } = wait
  const mayAnswer = status === 'open' && peopleKinds.includes(kind) && may('tasks:write')
  return (
    <tr>
      <td className="min-w-48 [overflow-wrap:anywhere]">
        {mayAnswer ? (
          <button type="button" onClick={() => onChoose(wait)} className="text-left font-medium text-accent hover:underline">
            {title}
          </button>
        ) : (
          <span className="font-medium">{title}</span>
        )}
      </td>
      <td>{agent}</td>
      <td className="whitespace-nowrap text-soft">{kindWords[kind]}</td>
      <td className="text-soft">{assignee ?? ''}</td>
      <td className="whitespace-nowrap text-soft">{age(now - Date.parse(createdAt))}</td>
      <td className="whitespace-nowrap text-soft">
        {status === 'open'
          ? `in ${duration(Date.parse(expiresAt) - now)}`
          : [outcomeOf(wait), wait.answer?.by && `by ${wait.answer.by}`].filter(Boolean).join(' ')}
      </td>
      <td>
        <Link to={taskPath(task)} className="relative text-accent hover:underline">
          Open<span className="sr-only"> the task of {title}</span>
        </Link>
      </td>
    </tr>
  )
}

function AnswerDialog({ wait, isOpen, onClose }: { wait: Wait; isOpen: boolean; onClose: () => void }) {
  const answer = useAnswer(wait.task)
  return (
    <Dialog title="Respond" onClose={onClose}>
      {isOpen ? (
        <WaitForm wait={wait} answer={answer} onAnswered={onClose} />
      ) : (
        <p role="status" className="text-soft">
          This question is closed: another person responded, or its turn ended.
        </p>
      )}
      <p className="mt-3">
        <Link to={taskPath(wait.task)} className="text-accent hover:underline">
          Open the task
        </Link>
      </p>
    </Dialog>
  )
}
