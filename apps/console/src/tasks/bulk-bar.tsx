/** What can be done to the selected tasks at once. A person sees how many it would affect before it happens, and what failed afterwards. */
import { hasEnded, type TaskHandle, type TaskSummary } from '@rivulet/client'
import { useClient } from '@rivulet/client/react'
import { type ReactNode, useState } from 'react'
import { Button } from '../shell/elements/button.tsx'
import { Dialog } from '../shell/elements/dialog.tsx'
import { textOf } from '../shell/queries.ts'
import { useSession } from '../shell/session.tsx'

const atOnce = 4

type Deed = 'cancel' | 'retry' | 'delete'

const fits: Record<Deed, (task: TaskSummary) => boolean> = {
  cancel: ({ status }) => !hasEnded(status),
  retry: ({ status }) => status === 'failed' || status === 'canceled',
  delete: ({ status }) => hasEnded(status),
}
const deeds: Record<Deed, (task: TaskHandle) => Promise<unknown>> = {
  cancel: task => task.cancel('Stopped in the console'),
  retry: task => task.retry(),
  delete: task => task.remove(),
}
const names: Record<Deed, string> = { cancel: 'Cancel', retry: 'Retry', delete: 'Delete' }
const others: Record<Deed, string> = { cancel: 'have ended already', retry: 'have not failed', delete: 'have not ended' }
const notes: Record<Deed, string> = {
  cancel: 'What they have said so far is kept.',
  retry: 'Their last turn runs again, as a new turn.',
  delete: 'Their messages are deleted, too. This cannot be undone.',
}

type BulkBarProps = { tasks: readonly TaskSummary[]; onDone: () => void; onClear: () => void; children?: ReactNode }

export function BulkBar({ tasks, onDone, onClear, children }: BulkBarProps) {
  const { may } = useSession()
  const [deed, setDeed] = useState<Deed | null>(null)
  return (
    <div
      role="toolbar"
      aria-label="Selected tasks"
      className="flex flex-wrap items-center gap-2 border-y border-line bg-well px-4 py-1.5 text-[13px] sm:px-6"
    >
      <span className="font-medium tabular-nums">{tasks.length} selected</span>
      {children}
      <span className="grow" />
      {may('tasks:write') &&
        (Object.keys(fits) as Deed[]).map(each => (
          <Button key={each} kind={each === 'delete' ? 'danger' : 'plain'} disabled={!tasks.some(fits[each])} onClick={() => setDeed(each)}>
            {names[each]} {tasks.filter(fits[each]).length || ''}
          </Button>
        ))}
      <Button kind="quiet" onClick={onClear}>
        Clear
      </Button>
      {deed && (
        <BulkDialog
          deed={deed}
          tasks={tasks}
          onClose={isDone => {
            setDeed(null)
            onDone()
            if (isDone) onClear()
          }}
        />
      )}
    </div>
  )
}

type Progress = { done: number; failed: { id: string; reason: string }[]; isOver: boolean }

function BulkDialog({ deed, tasks, onClose }: { deed: Deed; tasks: readonly TaskSummary[]; onClose: (isDone: boolean) => void }) {
  const client = useClient()
  // As it was when the person decided: a deed changes what fits it.
  const [meant] = useState(() => tasks.filter(fits[deed]))
  const [progress, setProgress] = useState<Progress | null>(null)
  const left = tasks.length - meant.length
  const name = `${names[deed]} ${meant.length} ${meant.length === 1 ? 'task' : 'tasks'}`
  return (
    <Dialog title={`${name}?`} onClose={() => onClose(progress?.isOver === true && progress.failed.length === 0)}>
      <p className="text-soft">
        {notes[deed]} {left > 0 && `${left} of the ${tasks.length} selected ${others[deed]} and stay as they are.`}
      </p>
      {progress && (
        <p role="status" className="mt-3 tabular-nums">
          {progress.done} of {meant.length} done{progress.failed.length > 0 && `, ${progress.failed.length} failed`}
        </p>
      )}
      {progress?.failed.slice(0, 5).map(({ id, reason }) => (
        <p key={id} className="mt-1 text-[13px] text-bad">
          <span className="font-mono">{id}</span>: {reason}
        </p>
      ))}
      <div className="mt-4 flex justify-end gap-2">
        <Button
          data-first={deed === 'delete' || undefined}
          onClick={() => onClose(progress?.isOver === true && progress.failed.length === 0)}
        >
          {progress ? 'Close' : 'Back'}
        </Button>
        {!progress && (
          <Button data-first={deed !== 'delete' || undefined} kind={deed === 'delete' ? 'danger' : 'primary'} onClick={() => void run()}>
            {name}
          </Button>
        )}
      </div>
    </Dialog>
  )

  async function run(): Promise<void> {
    const queue = [...meant]
    const state: Progress = { done: 0, failed: [], isOver: false }
    setProgress({ ...state })
    await Promise.all(Array.from({ length: atOnce }, work))
    setProgress({ ...state, isOver: true })

    async function work(): Promise<void> {
      for (let task = queue.shift(); task; task = queue.shift()) {
        try {
          const handle = client.tasks.get(task.id)
          await deeds[deed](handle)
          state.done += 1
        } catch (error) {
          state.failed = [...state.failed, { id: task.id, reason: textOf(error) }]
        }
        setProgress({ ...state })
      }
    }
  }
}
