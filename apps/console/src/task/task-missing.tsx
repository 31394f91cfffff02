/** The page of a task that does not exist, or that this viewer may not read. */
import type { RivuletError } from '@rivulet/client'
import { Link } from '../shell/elements/link.tsx'
import { listPath } from '../shell/route.ts'

export function TaskMissing({ id, error, isShared }: { id: string; error: RivuletError | null; isShared: boolean }) {
  return (
    <div className="grid h-full place-items-center p-6 text-center">
      <div>
        <h1 className="text-lg font-semibold">
          {isShared && error?.code === 'unauthorized' ? 'This link has expired' : 'This task cannot be shown'}
        </h1>
        <p className="mt-2 text-soft">{isShared ? 'Ask the person who sent it for another one.' : error?.message}</p>
        <p className="mt-1 font-mono text-xs text-faint">{id}</p>
        <Link to={listPath()} className="mt-4 inline-block text-accent underline">
          All tasks
        </Link>
      </div>
    </div>
  )
}
