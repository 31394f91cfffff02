/** The schedules: when each runs next, what became of its runs, pause and trigger. */
import type { Schedule, ScheduleRun } from '@rivulet/client'
import { useClient } from '@rivulet/client/react'
import { useState } from 'react'
import { Button } from '../shell/elements/button.tsx'
import { ConfirmDialog } from '../shell/elements/confirm-dialog.tsx'
import { Dialog } from '../shell/elements/dialog.tsx'
import { MoreIcon } from '../shell/elements/icons.tsx'
import { Link } from '../shell/elements/link.tsx'
import { Menu } from '../shell/elements/menu.tsx'
import { Table } from '../shell/elements/page-frame.tsx'
import { useNow } from '../shell/hooks/use-now.ts'
import { age, duration } from '../shell/human-units.ts'
import { usePolled } from '../shell/queries.ts'
import { taskPath } from '../shell/route.ts'
import { useSession } from '../shell/session.tsx'
import { wordsOf } from '../tasks/task-title.ts'
import { NewScheduleDialog } from './new-schedule-dialog.tsx'
import { SectionHead } from './section-head.tsx'
import { useDeed } from './use-deed.ts'

type Open = { dialog: 'new' } | { dialog: 'runs' | 'delete'; schedule: Schedule } | null

export function ScheduleSection() {
  const client = useClient()
  const { may } = useSession()
  const state = usePolled(['schedules'], signal => client.schedules.list({}, { signal }), 5_000)
  const { error, attempt } = useDeed(state.refresh)
  const [open, setOpen] = useState<Open>(null)
  const now = useNow(1_000)
  const schedules = state.value?.data ?? []
  const close = () => setOpen(null)
  return (
    <section aria-label="Schedules">
      <SectionHead title="Schedules" action="New schedule" onAction={() => setOpen({ dialog: 'new' })} {...{ state, error }} />
      {state.value && (
        <Table
          caption="Schedules, with their next time"
          columns={['Agent', 'Time', 'Next run', 'State', 'Actions']}
          empty={schedules.length === 0 ? 'No schedules yet. A schedule gives an agent a task at times of a cron line.' : null}
        >
          {schedules.map(schedule => (
            <tr key={schedule.id}>
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
              <td>
                <span className="flex items-center gap-1">
                  <Button kind="quiet" onClick={() => setOpen({ dialog: 'runs', schedule })}>
                    Runs
                  </Button>
                  {may('tasks:write') && (
                    <Menu
                      label={`Actions of ${schedule.agent}, ${schedule.cron}`}
                      items={[
                        schedule.status === 'paused'
                          ? { name: 'Resume', choose: () => attempt(() => client.schedules.resume(schedule.id)) }
                          : { name: 'Pause', choose: () => attempt(() => client.schedules.pause(schedule.id)) },
                        { name: 'Run now', choose: () => trigger(schedule) },
                        { name: 'Delete', isDanger: true, choose: () => setOpen({ dialog: 'delete', schedule }) },
                      ]}
                    >
                      <MoreIcon />
                    </Menu>
                  )}
                </span>
              </td>
            </tr>
          ))}
        </Table>
      )}
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
    </section>
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
