/** All tasks, live. */
import type { Task, TaskStatus } from '@rivulet/client'
import { useEffect, useMemo, useRef, useState } from 'react'
import { useAgents } from '../agents/use-agents.ts'
import { Button } from '../shell/elements/button.tsx'
import { PlusIcon, SearchIcon } from '../shell/elements/icons.tsx'
import { useFixedRows } from '../shell/hooks/use-fixed-rows.ts'
import { useKeys } from '../shell/hooks/use-keys.ts'
import { useNow } from '../shell/hooks/use-now.ts'
import { navigate, taskPath, useQuery } from '../shell/route.ts'
import { NewTaskDialog } from './new-task-dialog.tsx'
import { isFound } from './task-book.ts'
import { TaskRow, TaskRowHead } from './task-row.tsx'
import { useSearchedTask } from './use-searched-task.ts'
import { useTaskList } from './use-task-list.ts'
import { useTurns } from './use-turns.ts'

const statuses: TaskStatus[] = ['queued', 'running', 'waiting', 'completed', 'failed', 'canceled']
const rowPx = 60

export function TasksPage() {
  const [agent, setAgent] = useQuery('agent')
  const [statusText, setStatus] = useQuery('status')
  const [search, setSearch] = useQuery('search')
  const status = statuses.find(known => known === statusText) ?? null
  const { book, isLoading, error, loadMore, look } = useTaskList({ agent, status })
  const searched = useSearchedTask(search ?? '')
  const { agents } = useAgents()
  const [isCreating, setCreating] = useState(false)
  const [selected, setSelected] = useState<string | null>(null)
  const searchField = useRef<HTMLInputElement>(null)
  const now = useNow(1_000)

  const tasks = useMemo(() => {
    const found = book.tasks.filter(task => isFound(task, search ?? ''))
    return [...searched.filter(({ id }) => !found.some(task => task.id === id)), ...found]
  }, [book, search, searched])
  const { scroller, from, to, totalPx, show } = useFixedRows(tasks.length, rowPx)
  const inSight = useMemo(() => tasks.slice(from, to), [tasks, from, to])
  const turnsOf = useTurns(inSight)

  useEffect(() => look(from), [look, from])
  useEffect(() => {
    if (to >= tasks.length - 20) loadMore()
  }, [to, tasks.length, loadMore])

  useKeys({
    j: () => move(1),
    k: () => move(-1),
    Enter: event => {
      if (selected && !(event.target instanceof HTMLAnchorElement || event.target instanceof HTMLButtonElement))
        navigate(taskPath(selected))
    },
    n: event => {
      event.preventDefault()
      setCreating(true)
    },
    '/': event => {
      event.preventDefault()
      searchField.current?.focus()
    },
  })

  const hasFilter = agent !== null || status !== null || (search ?? '') !== ''
  return (
    <div className="flex h-full flex-col">
      <header className="flex flex-wrap items-center gap-x-3 gap-y-2 px-4 pt-4 pb-3 sm:px-6">
        <h1 className="grow text-lg font-semibold tracking-tight">Tasks</h1>
        <Button kind="primary" onClick={() => setCreating(true)} title="New task (n)">
          <PlusIcon />
          New task
        </Button>
        <div className="flex w-full flex-wrap gap-2">
          <label className="flex min-w-48 grow items-center gap-2 rounded-lg border border-line bg-panel px-3 text-soft focus-within:border-accent">
            <SearchIcon />
            <span className="sr-only">Search by name or id</span>
            <input
              ref={searchField}
              type="search"
              placeholder="Search by name or id"
              value={search ?? ''}
              onChange={event => setSearch(event.target.value)}
              onKeyDown={event => event.key === 'Escape' && event.currentTarget.blur()}
              className="w-full bg-transparent py-1.5 text-ink outline-none placeholder:text-faint"
            />
          </label>
          <Choice label="Agent" value={agent} options={agents.map(({ name }) => name)} onChange={setAgent} />
          <Choice label="Status" value={status} options={statuses} onChange={setStatus} />
        </div>
      </header>
      {error && (
        <p role="alert" className="mx-4 mb-2 rounded-lg bg-warn-well px-3 py-2 text-[13px] text-warn sm:mx-6">
          {error}. Trying again …
        </p>
      )}
      <TaskRowHead />
      <div ref={scroller} className="min-h-0 grow overflow-y-auto overscroll-contain">
        {tasks.length === 0 && !isLoading && <NoTasks hasFilter={hasFilter} onCreate={() => setCreating(true)} />}
        <ul aria-label="Tasks" className="relative" style={{ height: totalPx }}>
          {inSight.map((task, place) => (
            <li key={task.id} className="absolute inset-x-0" style={{ top: (from + place) * rowPx, height: rowPx }}>
              <TaskRow task={task} turns={turnsOf(task.id)} now={now} isSelected={task.id === selected} />
            </li>
          ))}
        </ul>
      </div>
      {isCreating && <NewTaskDialog agents={agents} onClose={() => setCreating(false)} />}
    </div>
  )

  function move(by: 1 | -1): void {
    const place = tasks.findIndex(({ id }: Task) => id === selected)
    const target = place < 0 ? 0 : Math.max(0, Math.min(tasks.length - 1, place + by))
    setSelected(tasks[target]?.id ?? null)
    show(target)
  }
}

function Choice({
  label,
  value,
  options,
  onChange,
}: {
  label: string
  value: string | null
  options: readonly string[]
  onChange: (value: string | null) => void
}) {
  return (
    <label className="flex items-center rounded-lg border border-line bg-panel">
      <span className="sr-only">{label}</span>
      <select
        value={value ?? ''}
        onChange={event => onChange(event.target.value || null)}
        className="rounded-lg bg-panel px-2.5 py-1.5 text-ink"
      >
        <option value="">{`Any ${label.toLowerCase()}`}</option>
        {options.map(option => (
          <option key={option}>{option}</option>
        ))}
      </select>
    </label>
  )
}

function NoTasks({ hasFilter, onCreate }: { hasFilter: boolean; onCreate: () => void }) {
  return (
    <div className="grid place-items-center px-6 py-20 text-center">
      <p className="text-base font-medium">{hasFilter ? 'No task matches the filters' : 'No tasks yet'}</p>
      {!hasFilter && (
        <>
          <p className="mt-1 max-w-sm text-soft">
            Give an agent something to do and watch it work. The assistant knows the time and can calculate.
          </p>
          <Button kind="primary" onClick={onCreate} className="mt-4">
            <PlusIcon />
            New task
          </Button>
        </>
      )}
    </div>
  )
}
