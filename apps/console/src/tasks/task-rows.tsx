/** The rows of the list: those in sight are in the page, keys move the focus from one to the next, and the list is found where it was left. */
import type { TaskQuery } from '@rivulet/client'
import { type ReactNode, useEffect, useLayoutEffect, useMemo, useRef, useState } from 'react'
import { StaleNote } from '../shell/elements/stale-note.tsx'
import { useFixedRows } from '../shell/hooks/use-fixed-rows.ts'
import { useKeys } from '../shell/hooks/use-keys.ts'
import { useNow } from '../shell/hooks/use-now.ts'
import { BulkBar } from './bulk-bar.tsx'
import { TaskRow, TaskRowHead } from './task-row.tsx'
import { useTaskList } from './use-task-list.ts'

const rowPx = 60

/** The task that had the focus last, in each list. */
const focusedIn = new Map<string, string>()

export function TaskRows({ name, filter, empty }: { name: string; filter: TaskQuery; empty: ReactNode }) {
  const { book, isLoading, error, updatedAt, refresh, loadMore, look } = useTaskList(filter)
  const { tasks } = book
  const now = useNow(1_000)
  const { scroller, from, to, totalPx, show } = useFixedRows(tasks.length, rowPx, name)
  const inSight = useMemo(() => tasks.slice(from, to), [tasks, from, to])
  const [selected, setSelected] = useState<ReadonlySet<string>>(new Set())
  const lastSelected = useRef<string | null>(null)
  const [wanted, setWanted] = useState(() => focusedIn.get(name) ?? null)

  useEffect(() => look(from), [look, from])
  // A page of a search may add no row: each page, and each refresh, makes another book, and then this loads the next page.
  useEffect(() => {
    if (to >= book.tasks.length - 20) loadMore()
  }, [to, book, loadMore])
  // The row may have to be drawn first.
  useLayoutEffect(() => {
    const row = wanted && scroller.current?.querySelector<HTMLElement>(`[data-task="${wanted}"]`)
    if (!row) return
    row.focus({ preventScroll: true })
    setWanted(null)
  })

  useKeys({
    j: () => move(1),
    k: () => move(-1),
    x: () => {
      const id = focusedId()
      if (id) select(id, false)
    },
  })

  return (
    <>
      <StaleNote error={error} updatedAt={updatedAt} className="mx-4 mb-2 sm:mx-6" />
      {selected.size > 0 && (
        <BulkBar tasks={tasks.filter(({ id }) => selected.has(id))} onDone={refresh} onClear={() => setSelected(new Set())}>
          {selected.size < tasks.length && (
            <button type="button" className="text-accent underline" onClick={() => setSelected(new Set(tasks.map(({ id }) => id)))}>
              Select all {tasks.length}
              {book.nextCursor === null ? '' : ' that are loaded'}
            </button>
          )}
        </BulkBar>
      )}
      <TaskRowHead />
      <div ref={scroller} className="min-h-0 grow overflow-y-auto overscroll-contain">
        {isLoading && <p className="px-6 py-4 text-soft">Loading …</p>}
        {tasks.length === 0 && book.nextCursor === null && !isLoading && !error && empty}
        <ul aria-label="Tasks" className="relative" style={{ height: totalPx }} onFocus={note}>
          {inSight.map((task, place) => (
            <li key={task.id} className="absolute inset-x-0" style={{ top: (from + place) * rowPx, height: rowPx }}>
              <TaskRow task={task} now={now} isSelected={selected.has(task.id)} onSelect={select} />
            </li>
          ))}
        </ul>
        {book.nextCursor !== null && <p className="px-6 py-4 text-soft">Searching older tasks …</p>}
      </div>
    </>
  )

  function focusedId(): string | undefined {
    return (document.activeElement as HTMLElement | null)?.dataset.task
  }

  function note(): void {
    const id = focusedId()
    if (id) focusedIn.set(name, id)
  }

  function move(by: 1 | -1): void {
    const id = focusedId() ?? focusedIn.get(name)
    const place = tasks.findIndex(task => task.id === id)
    const target = place < 0 ? 0 : Math.max(0, Math.min(tasks.length - 1, place + by))
    show(target)
    setWanted(tasks[target]?.id ?? null)
  }

  function select(id: string, isRange: boolean): void {
    const [one, other] = [lastSelected.current, id].map(known => tasks.findIndex(task => task.id === known)) as [number, number]
    const range = isRange && one >= 0 ? tasks.slice(Math.min(one, other), Math.max(one, other) + 1).map(task => task.id) : [id]
    lastSelected.current = id
    setSelected(before => {
      const after = new Set(before)
      for (const each of range)
        if (before.has(id)) after.delete(each)
        else after.add(each)
      return after
    })
  }
}
