/** A task in a line. */
import type { TaskSummary } from '@rivulet/client'
import { memo } from 'react'
import { Link } from '../shell/elements/link.tsx'
import { StatusMark } from '../shell/elements/status-mark.tsx'
import { age, count, duration, money } from '../shell/human-units.ts'
import { taskPath } from '../shell/route.ts'
import { titleOf } from './task-title.ts'

const columns =
  'grid grid-cols-[1fr_auto] md:grid-cols-[7rem_1fr_7rem_5rem_4rem_5rem] lg:grid-cols-[7rem_1fr_8rem_5.5rem_4.5rem_4.5rem_5.5rem] items-center gap-x-4'

export function TaskRowHead() {
  return (
    <div
      aria-hidden="true"
      className={`${columns} border-b border-line pr-4 pb-1.5 pl-11 text-xs text-faint max-md:hidden sm:pr-6 sm:pl-13`}
    >
      <span>Status</span>
      <span>Task</span>
      <span>Agent</span>
      <span className="text-right">Duration</span>
      <span className="text-right">Tokens</span>
      <span className="text-right max-lg:hidden">Cost</span>
      <span className="text-right">Created</span>
    </div>
  )
}

type TaskRowProps = {
  task: TaskSummary
  now: number
  isSelected: boolean
  /** Of a click: with Shift, everything up to the one before. */
  onSelect(id: string, isRange: boolean): void
}

export const TaskRow = memo(({ task, now, isSelected, onSelect }: TaskRowProps) => {
  const { id, agent, status, createdAt, ranMs, runningSince, dueAt, tokens, cost, error } = task
  const ms = ranMs + (runningSince ? Math.max(0, now - Date.parse(runningSince)) : 0)
  const title = titleOf(task)
  const figures = [ms > 0 && duration(ms), tokens > 0 && `${count(tokens)} tokens`, cost && money(cost)]
  return (
    <div className={`flex h-full items-center border-b border-line pl-4 sm:pl-6 ${isSelected ? 'bg-accent-well' : 'hover:bg-well'}`}>
      <input
        type="checkbox"
        aria-label={`Select ${title}`}
        checked={isSelected}
        onChange={() => {}}
        onClick={event => onSelect(id, event.shiftKey)}
        className="size-4 shrink-0 accent-accent"
      />
      <Link
        to={taskPath(id)}
        data-task={id}
        className={`${columns} h-full min-w-0 grow pr-4 pl-3 -outline-offset-2 focus-visible:bg-accent-well sm:pr-6`}
      >
        <span className="max-md:order-2 max-md:text-right max-md:text-xs">
          <StatusMark status={status} />
        </span>
        <span className="min-w-0 max-md:order-1">
          <span dir="auto" className="block truncate font-medium">
            {title}
          </span>
          <span className={`block truncate text-xs ${error ? 'text-bad' : 'text-faint'}`}>
            {error ? (
              `${error.code}: ${error.message}`
            ) : dueAt ? (
              `starts in ${duration(Date.parse(dueAt) - now)}`
            ) : (
              <>
                <span className="md:hidden">{[agent, age(now - Date.parse(createdAt)), ...figures].filter(Boolean).join(' · ')}</span>
                <span className="font-mono max-md:hidden">{id}</span>
              </>
            )}
          </span>
        </span>
        <span className="truncate text-soft max-md:hidden">{agent}</span>
        <span className="text-right text-soft tabular-nums max-md:hidden">{ms > 0 ? duration(ms) : ''}</span>
        <span className="text-right text-soft tabular-nums max-md:hidden">{tokens > 0 ? count(tokens) : ''}</span>
        <span className="text-right text-soft tabular-nums max-lg:hidden">{cost ? money(cost) : ''}</span>
        <span className="text-right whitespace-nowrap text-soft tabular-nums max-md:hidden">{age(now - Date.parse(createdAt))}</span>
      </Link>
    </div>
  )
})
