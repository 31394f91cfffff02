/** The children and forks of a task, and theirs, as a tree. */
import type { Task } from '@rivulet/client'
import { useClient } from '@rivulet/client/react'
import { Link } from '../../shell/elements/link.tsx'
import { StatusMark } from '../../shell/elements/status-mark.tsx'
import { useFeedPace } from '../../shell/feed.ts'
import { usePolled } from '../../shell/queries.ts'
import { taskPath } from '../../shell/route.ts'
import { useSession } from '../../shell/session.tsx'

/** Deeper ones are on the page of their parent. */
const maxDepth = 4

export function ChildTree({ id }: { id: string }) {
  const tasks = useChildren(id)
  if (tasks.length === 0) return null
  return (
    <section aria-label="Children and forks">
      <h3 className="mb-1 text-faint">Children and forks</h3>
      <Level tasks={tasks} depth={1} />
    </section>
  )
}

function Level({ tasks, depth }: { tasks: readonly Task[]; depth: number }) {
  return (
    <ul className={depth === 1 ? 'space-y-1' : 'mt-1 space-y-1 border-l border-line pl-3'}>
      {tasks.map(task => (
        <li key={task.id}>
          <span className="flex items-center gap-2">
            <StatusMark status={task.status} />
            <Link to={taskPath(task.id)} className="min-w-0 truncate hover:underline">
              {task.agent} <span className="font-mono text-xs text-faint">{task.id}</span>
            </Link>
          </span>
          {depth < maxDepth && <Below id={task.id} depth={depth + 1} />}
        </li>
      ))}
    </ul>
  )
}

function Below({ id, depth }: { id: string; depth: number }) {
  const tasks = useChildren(id)
  return tasks.length === 0 ? null : <Level tasks={tasks} depth={depth} />
}

function useChildren(id: string): readonly Task[] {
  const client = useClient()
  const { may, shared } = useSession()
  const pace = useFeedPace()
  const canList = may('tasks:read') && shared === null
  const { value } = usePolled(
    ['tasks', 'children', id],
    async signal => (canList ? (await client.tasks.list({ parent: id }, { signal })).data.toReversed() : []),
    pace && 15_000,
  )
  return value ?? []
}
