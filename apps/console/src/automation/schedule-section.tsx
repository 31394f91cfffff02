/** The schedules: when each runs next, what became of its runs, pause and trigger. */
import type { Schedule, ScheduleRun } from '@rivulet/client'
import { useClient } from '@rivulet/client/react'
import { useState } from 'react'
import { ConfirmDialog } from '../shell/elements/confirm-dialog.tsx'
import { Dialog } from '../shell/elements/dialog.tsx'
import { Link } from '../shell/elements/link.tsx'
import { useDeed } from '../shell/hooks/use-deed.ts'
import { useNow } from '../shell/hooks/use-now.ts'
import { age, duration } from '../shell/human-units.ts'
import { usePolled } from '../shell/queries.ts'
import { taskPath } from '../shell/route.ts'
import { wordsOf } from '../tasks/task-title.ts'
import { NewScheduleDialog } from './new-schedule-dialog.tsx'
import { Section } from './section.tsx'

type Open = { dialog: 'new' } | { dialog: 'runs' | 'delete'; schedule: Schedule } | null

export function ScheduleSection() {
  const client = useClient()
  const state = usePolled(['schedules'], signal => client.schedules.list({}, { signal }), 5_000)
  const { error, attempt } = useDeed(state.refresh)
  const [open, setOpen] = useState<Open>(null)
  const now = useNow(1_000)
  const close = () => setOpen(null)
  return (
    <Section
      title="Schedules"
      kind="schedule"
      caption="Schedules, with their next time"
      columns={['Agent', 'Time', 'Next run']}
      empty="No schedules yet. A schedule gives an agent a task at times of a cron line."
      {...{ state, error }}
      onNew={() => setOpen({ dialog: 'new' })}
      nameOf={({ agent, cron }) => `${agent}, ${cron}`}
      look={{ name: 'Runs', open: schedule => setOpen({ dialog: 'runs', schedule }) }}
      cells={schedule => (
        <>
          <td className="min-w-40">
            <span className="font-medium">{schedule.agent}</span>
            <span dir="auto" className="block max-w-80 truncate text-[13px] text-soft">
              {schedule.name ?? (schedule.input ? wordsOf(schedule.input) : '')}
            </span>
          </td>
          <td className="whitespace-nowrap">
            <code className="font-mono text-[13px]">{schedule.cron}</code>
            <span className="block text-xs text-faint">{schedule.timezone}</span>
          </td>
          <td className="whitespace-nowrap text-soft tabular-nums">{nextOf(schedule, now)}</td>
          <td className={schedule.status === 'paused' ? 'text-warn' : 'text-good'}>{schedule.status}</td>
        </>
      )}
      actions={schedule => [
        schedule.status === 'paused'
          ? { name: 'Resume', choose: () => attempt(() => client.schedules.resume(schedule.id)) }
          : { name: 'Pause', choose: () => attempt(() => client.schedules.pause(schedule.id)) },
        { name: 'Run now', choose: () => trigger(schedule) },
        { name: 'Delete', isDanger: true, choose: () => setOpen({ dialog: 'delete', schedule }) },
      ]}
    >
      {open?.dialog === 'new' && <NewScheduleDialog onClose={close} onDone={state.refresh} />}
      {open?.dialog === 'runs' && <RunsDialog schedule={open.schedule} onClose={close} />}
      {open?.dialog === 'delete' && (
        <ConfirmDialog
          title="Delete this schedule?"
          action="Delete"
          onClose={close}
          onConfirm={() => attempt(() => client.schedules.remove(open.schedule.id))}
        >
          It creates no further tasks, and its history is deleted. The tasks that it has created stay.
        </ConfirmDialog>
      )}
    </Section>
  )

  function trigger(schedule: Schedule): void {
    attempt(async () => {
      await client.schedules.trigger(schedule.id)
      setOpen({ dialog: 'runs', schedule })
    })
  }
}

function nextOf({ nextAt, status }: Schedule, now: number): string {
  if (!nextAt) return status === 'paused' ? '–' : 'never'
  return `in ${duration(Math.max(0, Math.ceil((Date.parse(nextAt) - now) / 1_000)) * 1_000)}`
}

function RunsDialog({ schedule, onClose }: { schedule: Schedule; onClose: () => void }) {
  const client = useClient()
  const { value, error } = usePolled(
    ['schedule-runs', schedule.id],
    signal => client.schedules.history(schedule.id, { limit: 50 }, { signal }),
    3_000,
  )
  const now = useNow(1_000)
  return (
    <Dialog title={`Runs of ${schedule.agent}, ${schedule.cron}`} onClose={onClose}>
      {error && <p className="text-bad">{error}</p>}
      {value?.data.length === 0 && <p className="text-soft">It has not run yet.</p>}
      <ul className="divide-y divide-line">
        {value?.data.map(run => (
          <li key={`${run.at} ${run.createdAt}`} className="flex flex-wrap items-baseline gap-x-3 py-1.5">
            <span className="w-20 shrink-0 text-soft tabular-nums">{age(now - Date.parse(run.at))}</span>
            <RunOutcome run={run} />
          </li>
        ))}
      </ul>
    </Dialog>
  )
}

function RunOutcome({ run: { task, turn, skipReason, error } }: { run: ScheduleRun }) {
  if (task)
    return (
      <Link to={taskPath(task)} className="min-w-0 truncate font-mono text-xs text-accent hover:underline">
        {task}
        {turn !== undefined && turn > 1 && `, turn ${turn}`}
      </Link>
    )
  return <span className="text-warn">{error ? `${error.code}: ${error.message}` : `left out: ${skipReason ?? 'unknown'}`}</span>
}
