/** The facts of a task: what it was given, when, by which worker it runs, and what went wrong. */
import type { Json, State, Task, TaskHandle, Turn } from '@rivulet/client'
import { type ReactNode, useEffect } from 'react'
import { JsonTree } from '../../json/json-tree.tsx'
import { CopyButton } from '../../shell/elements/copy-button.tsx'
import { CloseIcon } from '../../shell/elements/icons.tsx'
import { Link } from '../../shell/elements/link.tsx'
import { StaleNote } from '../../shell/elements/stale-note.tsx'
import { StatusMark } from '../../shell/elements/status-mark.tsx'
import { count, duration, money } from '../../shell/human-units.ts'
import { usePolled } from '../../shell/queries.ts'
import { tokensIn } from '../../transcript/turn-usage.ts'
import { ChildTree } from './child-tree.tsx'

type FactsProps = { handle: TaskHandle; state: State; version: string; onClose: () => void }

/** @param state as the live view has it */
export function FactsPanel({ handle, state, version, onClose }: FactsProps) {
  const { value, error, updatedAt, refresh } = usePolled(['facts', handle.id], signal => handle.detail({ signal }), 10_000)
  // biome-ignore lint/correctness/useExhaustiveDependencies: whenever the live view has heard of a change
  useEffect(() => refresh(), [version])
  return (
    <aside aria-label="Facts" className="flex min-h-0 grow flex-col bg-panel text-[13px]">
      <header className="flex items-center border-b border-line px-4 py-2">
        <h2 className="grow text-sm font-semibold">Facts</h2>
        <button
          type="button"
          aria-label="Close the facts"
          onClick={onClose}
          className="rounded-lg p-1.5 text-soft hover:bg-well hover:text-ink"
        >
          <CloseIcon />
        </button>
      </header>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls has to be reachable by keyboard */}
      <section tabIndex={0} aria-label="Facts of the task" className="min-h-0 grow space-y-5 overflow-y-auto px-4 py-3">
        <StaleNote error={error} updatedAt={updatedAt} />
        {value && <TaskFacts task={value.task} />}
        <ChildTree id={handle.id} />
        {state.version > 0 && <Value title={`State, version ${state.version}`} value={state.value} />}
        {value?.turns.toReversed().map(turn => (
          <TurnFacts key={turn.number} turn={turn} />
        ))}
      </section>
    </aside>
  )
}

function TaskFacts({ task }: { task: Task }) {
  const { id, name, agent, parent, budget, createdAt, updatedAt, metadata, params } = task
  return (
    <>
      <dl className="grid grid-cols-[6.500rem_1fr] gap-x-3 gap-y-1.5">
        <Fact name="Id" copy={id} isCode>
          {id}
        </Fact>
        {name && (
          <Fact name="Name" copy={name}>
            {name}
          </Fact>
        )}
        <Fact name="Agent">{agent}</Fact>
        {budget && <Fact name="Budget">{budgetText(budget)}</Fact>}
        {parent && (
          <Fact name="Parent" copy={parent} isCode>
            <TaskLink id={parent} />
          </Fact>
        )}
        <Fact name="Created">{timeOf(createdAt)}</Fact>
        <Fact name="Changed">{timeOf(updatedAt)}</Fact>
      </dl>
      <Value title="Metadata" value={metadata} />
      <Value title="Params" value={params} />
    </>
  )
}

function TaskLink({ id }: { id: string }) {
  return (
    <Link to={`/tasks/${id}`} className="underline">
      {id}
    </Link>
  )
}

function TurnFacts({ turn }: { turn: Turn }) {
  const {
    number,
    status,
    attempt,
    queuedAt,
    dueAt,
    startedAt,
    finishedAt,
    worker,
    traceId,
    usage,
    usageTotal = usage,
    cost,
    error,
    params,
    stopReason,
  } = turn
  const ms = startedAt && (finishedAt ? Date.parse(finishedAt) : Date.now()) - Date.parse(startedAt)
  return (
    <section aria-label={`Turn ${number}`} className="border-t border-line pt-3">
      <h3 className="mb-2 flex items-center justify-between text-sm font-semibold">
        Turn {number}
        <span className="text-[13px] font-normal">
          <StatusMark status={status} />
        </span>
      </h3>
      <dl className="grid grid-cols-[6.500rem_1fr] gap-x-3 gap-y-1.5">
        <Fact name="Queued">{timeOf(queuedAt)}</Fact>
        {dueAt && <Fact name="Due">{timeOf(dueAt)}</Fact>}
        {startedAt && <Fact name="Started">{`${timeOf(startedAt)}, after ${duration(Date.parse(startedAt) - Date.parse(queuedAt))}`}</Fact>}
        {finishedAt && <Fact name="Finished">{timeOf(finishedAt)}</Fact>}
        {ms && <Fact name="Duration">{duration(ms)}</Fact>}
        {attempt > 1 && <Fact name="Attempts">{attempt}</Fact>}
        {stopReason && <Fact name="Stop reason">{stopReason}</Fact>}
        {usageTotal && (
          <Fact name="Tokens">{`${count(tokensIn(turn))} (${Object.entries(usageTotal)
            .map(([kind, n]) => `${kind} ${n.toLocaleString('en')}`)
            .join(', ')})`}</Fact>
        )}
        {cost !== undefined && <Fact name="Cost">{money(cost)}</Fact>}
        {worker && (
          <Fact name="Worker" copy={worker} isCode>
            {worker}
          </Fact>
        )}
        {traceId && (
          <Fact name="Trace" copy={traceId} isCode>
            {traceId}
          </Fact>
        )}
        {error && (
          <Fact name="Error" copy={JSON.stringify(error)}>
            <span className="text-bad">
              {error.code}: {error.message}
            </span>
            {error.detail && <span className="mt-1 block font-mono text-xs whitespace-pre-wrap text-bad">{error.detail}</span>}
          </Fact>
        )}
      </dl>
      {params !== undefined && <Value title="Params of this turn" value={params} />}
    </section>
  )
}

function Fact({ name, copy, isCode = false, children }: { name: string; copy?: string; isCode?: boolean; children: ReactNode }) {
  return (
    <>
      <dt className="text-faint">{name}</dt>
      <dd className={`flex min-w-0 items-start gap-1 ${isCode ? 'font-mono text-xs leading-5' : ''}`}>
        <span className="min-w-0 grow [overflow-wrap:anywhere]">{children}</span>
        {copy !== undefined && (
          <span className="-my-1">
            <CopyButton label={`Copy ${name.toLowerCase()}`} text={() => copy} />
          </span>
        )}
      </dd>
    </>
  )
}

function Value({ title, value }: { title: string; value: Json }) {
  if (value === null || (typeof value === 'object' && Object.keys(value).length === 0)) return null
  return (
    <section aria-label={title} className="mt-3">
      <h3 className="flex items-center justify-between text-faint">
        {title}
        <CopyButton label={`Copy ${title.toLowerCase()}`} text={() => JSON.stringify(value, null, 2)} />
      </h3>
      <div className="overflow-x-auto rounded-lg border border-line bg-page p-2 font-mono text-xs">
        <JsonTree value={value} />
      </div>
    </section>
  )
}

function budgetText({ tokens, usd }: NonNullable<Task['budget']>): string {
  return [tokens === undefined ? '' : `${count(tokens)} tokens`, usd === undefined ? '' : money(usd)].filter(Boolean).join(', ')
}

function timeOf(iso: string): string {
  return new Date(iso).toLocaleString('en-GB', { dateStyle: 'medium', timeStyle: 'medium' })
}
