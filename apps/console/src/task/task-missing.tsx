import type { RivuletError } from '@rivulet/client'
import { Link } from '../shell/elements/link.tsx'

export function TaskMissing({ id, error }: { id: string; error: RivuletError | null }) {
  return (
    <div className="grid h-full place-items-center p-6 text-center">
      <div>
        <h1 className="text-lg font-semibold">This task cannot be shown</h1>
        <p className="mt-2 text-soft">{error?.message}</p>
        <p className="mt-1 font-mono text-xs text-faint">{id}</p>
        <Link to="/" className="mt-4 inline-block text-accent underline">
          All tasks
        </Link>
      </div>
    </div>
  )
}
