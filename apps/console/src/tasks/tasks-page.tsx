/** All tasks, live. */
import { type KeyboardEvent, lazy, Suspense, useEffect, useMemo, useRef, useState } from 'react'
import { useAgents } from '../agents/use-agents.ts'
import { Button } from '../shell/elements/button.tsx'
import { FilterIcon, PlusIcon, SearchIcon } from '../shell/elements/icons.tsx'
import { Choice } from '../shell/forms/choice.tsx'
import { useKeys } from '../shell/hooks/use-keys.ts'
import { usePageTitle } from '../shell/hooks/use-page-title.ts'
import { useQuery, useQueryText } from '../shell/route.ts'
import { useSession } from '../shell/session.tsx'
import { FilterBar } from './filters/filter-bar.tsx'
import { queryIn, statuses } from './filters/task-filters.ts'
import { TaskRows } from './task-rows.tsx'

const FilterDialog = lazy(async () => ({ default: (await import('./filters/filter-dialog.tsx')).FilterDialog }))
const NewTaskDialog = lazy(async () => ({ default: (await import('./new-task-dialog.tsx')).NewTaskDialog }))

const settleMs = 200

export function TasksPage() {
  usePageTitle('Tasks')
  const name = useQueryText()
  const [agent, setAgent] = useQuery('agent')
  const [statusText, setStatus] = useQuery('status')
  const [search, setSearch] = useQuery('search')
  // A draft belongs to the search that it changes: a saved view, which brings another one, discards it.
  const [draft, setDraft] = useState<{ text: string; of: string | null } | null>(null)
  const typed = draft?.of === search ? draft.text : null
  useEffect(() => {
    if (typed === null) return
    const timer = setTimeout(() => {
      setSearch(typed)
      setDraft(null)
    }, settleMs)
    return () => clearTimeout(timer)
  }, [typed, setSearch])
  const status = statuses.find(known => known === statusText) ?? null
  const filter = useMemo(() => queryIn(name, Date.now()), [name])
  const { agents } = useAgents()
  const { may } = useSession()
  const [isCreating, setCreating] = useState(false)
  const [isFiltering, setFiltering] = useState(false)
  const searchField = useRef<HTMLInputElement>(null)

  useKeys({
    n: event => {
      event.preventDefault()
      if (may('tasks:write')) setCreating(true)
    },
    '/': event => {
      event.preventDefault()
      searchField.current?.focus()
    },
  })

  const hasFilter = Object.keys(filter).length > 0
  return (
    <div className="flex h-full flex-col">
      <header className="flex flex-wrap items-center gap-x-3 gap-y-2 px-4 pt-4 pb-3 sm:px-6">
        <h1 className="grow text-lg font-semibold tracking-tight">Tasks</h1>
        {may('tasks:write') && (
          <Button kind="primary" onClick={() => setCreating(true)} title="New task (n)">
            <PlusIcon />
            New task
          </Button>
        )}
        <div className="flex w-full flex-wrap gap-2">
          <label className="flex min-w-48 grow items-center gap-2 rounded-lg border border-line bg-panel px-3 text-soft focus-within:border-accent">
            <SearchIcon />
            <span className="sr-only">Search tasks</span>
            <input
              ref={searchField}
              type="search"
              placeholder="Search by text, name, metadata or id"
              value={typed ?? search ?? ''}
              maxLength={200}
              onChange={event => setDraft({ text: event.target.value, of: search })}
              onKeyDown={leave}
              className="w-full bg-transparent py-1.5 text-ink outline-none placeholder:text-faint"
            />
          </label>
          <Choice label="Agent" value={agent} options={agents.map(({ name }) => name)} onChange={setAgent} />
          <Choice label="Status" value={status} options={statuses} onChange={setStatus} />
          <Button onClick={() => setFiltering(true)}>
            <FilterIcon />
            More filters
          </Button>
        </div>
        <FilterBar address={name} onClear={() => setDraft(null)} />
      </header>
      <TaskRows
        key={name}
        {...{ name, filter }}
        empty={<NoTasks hasFilter={hasFilter} onCreate={may('tasks:write') ? () => setCreating(true) : null} />}
      />
      <Suspense>
        {isFiltering && <FilterDialog address={name} onClose={() => setFiltering(false)} />}
        {isCreating && <NewTaskDialog agents={agents} onClose={() => setCreating(false)} />}
      </Suspense>
    </div>
  )
}

/** To the list, with its search: a browser would clear the field. */
function leave(event: KeyboardEvent<HTMLInputElement>): void {
  if (event.key !== 'Escape') return
  event.preventDefault()
  event.currentTarget.blur()
}

function NoTasks({ hasFilter, onCreate }: { hasFilter: boolean; onCreate: (() => void) | null }) {
  return (
    <div className="grid place-items-center px-6 py-20 text-center">
      <p className="text-base font-medium">{hasFilter ? 'No task matches the filters' : 'No tasks yet'}</p>
      {!hasFilter && onCreate && (
        <>
          <p className="mt-1 max-w-sm text-soft">
            Give an agent something to do and watch it work. The assistant knows the time and can calculate.
          </p>
          <Button kind="primary" onClick={onCreate} className="mt-4">
            <PlusIcon />
            New task
          </Button>
          <p className="mt-6 max-w-md text-soft">
            For an agent of your own, run <code>npx rivulet init my-agents</code>, or <code>npx rivulet init my-agents --python</code> for
            one in Python.
          </p>
        </>
      )}
    </div>
  )
}
