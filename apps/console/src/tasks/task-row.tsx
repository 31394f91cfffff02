/** A task in a line. */
import type { Task, Turn } from '@rivulet/client'
import { memo } from 'react'
import { Link } from '../shell/elements/link.tsx'
import { StatusMark } from '../shell/elements/status-mark.tsx'
import { age, count, duration } from '../shell/human-units.ts'
import { taskPath } from '../shell/route.ts'
import { runningMs } from '../task/running-time.ts'
import { tokensOf } from '../transcript/turn-usage.ts'
import { titleOf } from './task-title.ts'

const columns = 'grid grid-cols-[1fr_auto] md:grid-cols-[7rem_1fr_8rem_5.5rem_5rem_5.5rem] items-center gap-x-4 px-4 sm:px-6'

export function TaskRowHead() {
  return (
    <div aria-hidden="true" className={`${columns} border-b border-line pb-1.5 text-xs text-faint max-md:hidden`}>
      <span>Status</span>
      <span>Task</span>
      <span>Agent</span>
      <span className="text-right">Duration</span>
      <span className="text-right">Tokens</span>
      <span className="text-right">Created</span>
    </div>
  )
}

export const TaskRow = memo(
  ({ task, turns, now, isSelected }: { task: Task; turns: readonly Turn[] | undefined; now: number; isSelected: boolean }) => {
    const ms = turns ? runningMs(turns, now) : 0
    const tokens = turns?.reduce((sum, { usage }) => sum + tokensOf(usage), 0) ?? 0
    const { id, agent, status, createdAt } = task
    return (
      <Link
        to={taskPath(id)}
        aria-current={isSelected ? 'true' : undefined}
        className={`${columns} h-full border-b border-line -outline-offset-2 ${isSelected ? 'bg-accent-well' : 'hover:bg-well'}`}
      >
        <span className="max-md:order-2 max-md:text-right max-md:text-xs">
          <StatusMark status={status} />
        </span>
        <span className="min-w-0 max-md:order-1">
          <span className="block truncate font-medium">{titleOf(task, turns)}</span>
          <span className="block truncate text-xs text-faint">
            <span className="md:hidden">
              {agent} · {age(now - Date.parse(createdAt))}
            </span>
            <span className="font-mono max-md:hidden">{id}</span>
          </span>
        </span>
        <span className="truncate text-soft max-md:hidden">{agent}</span>
        <span className="text-right text-soft tabular-nums max-md:hidden">{ms > 0 ? duration(ms) : ''}</span>
        <span className="text-right text-soft tabular-nums max-md:hidden">{tokens > 0 ? count(tokens) : ''}</span>
        <span className="text-right whitespace-nowrap text-soft tabular-nums max-md:hidden">{age(now - Date.parse(createdAt))}</span>
      </Link>
    )
  },
)
