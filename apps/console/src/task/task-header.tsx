/** What task this is, how it is doing, and what can be done about it. */
import { type ConnectionStatus, type FoldedTurn, hasEnded, type Task, type TaskStatus } from '@rivulet/client'
import type { ReactNode } from 'react'
import { Button } from '../shell/elements/button.tsx'
import { BackIcon, FactsIcon, InspectIcon, StopIcon } from '../shell/elements/icons.tsx'
import { Link } from '../shell/elements/link.tsx'
import { StatusMark } from '../shell/elements/status-mark.tsx'
import { useNow } from '../shell/hooks/use-now.ts'
import { count, duration, money } from '../shell/human-units.ts'
import { listPath } from '../shell/route.ts'
import { useSession } from '../shell/session.tsx'
import { costIn, tokensIn } from '../transcript/turn-usage.ts'
import { ConnectionMark } from './connection-mark.tsx'
import { runningMs } from './running-time.ts'
import type { Stop } from './use-stop.ts'

/** What is open beside the transcript. */
export type Panel = 'inspector' | 'facts'

type TaskHeaderProps = {
  /** Its name, or the first words that it was given. */
  title: string
  task: Task | null
  status: TaskStatus | null
  turns: readonly FoldedTurn[]
  connection: ConnectionStatus
  panel: Panel | null
  onPanel(panel: Panel | null): void
  /** The menu of its actions. */
  actions: ReactNode
  /** Null when there is nothing to stop. */
  stop: Stop | null
}

export function TaskHeader({ title, task, status, turns, connection, panel, onPanel, actions, stop }: TaskHeaderProps) {
  const { shared } = useSession()
  const isBusy = status !== null && !hasEnded(status)
  const now = useNow(isBusy ? 500 : null)
  const ms = runningMs(turns, now)
  const tokens = turns.reduce((sum, turn) => sum + tokensIn(turn), 0)
  const cost = costIn(turns)
  return (
    <header className="flex flex-wrap items-center gap-x-1 gap-y-1 border-b border-line px-3 py-2.5 sm:gap-x-3 sm:px-4">
      {!shared && (
        <Link to={listPath()} aria-label="All tasks" className="rounded-lg p-1.5 text-soft hover:bg-well hover:text-ink">
          <BackIcon />
        </Link>
      )}
      <div className="min-w-0 flex-1 basis-28 sm:basis-40">
        <h1 dir="auto" title={title} className="truncate text-[15px] font-semibold">
          {title}
        </h1>
        <div className="flex flex-wrap items-center gap-x-3 text-[13px] text-soft">
          {status && <StatusMark status={status} />}
          {task && <span>{task.agent}</span>}
          {ms > 0 && <span className="tabular-nums">{duration(ms)}</span>}
          {tokens > 0 && <span>{count(tokens)} tokens</span>}
          {cost !== null && cost > 0 && <span>{money(cost)}</span>}
          <ConnectionMark connection={connection} isBusy={isBusy} />
        </div>
      </div>
      {stop?.error && (
        <span role="alert" className="text-[13px] text-bad">
          {stop.error}
        </span>
      )}
      {stop && (
        <Button kind="danger" onClick={stop.ask} disabled={stop.isStopping} title="Stop (s)">
          <StopIcon />
          {stop.isStopping ? 'Stopping …' : 'Stop'}
        </Button>
      )}
      <PanelButton name="Facts" icon={<FactsIcon />} isOpen={panel === 'facts'} onChange={isOpen => onPanel(isOpen ? 'facts' : null)} />
      <PanelButton
        name="Inspector"
        hint="Inspector (i)"
        icon={<InspectIcon />}
        isOpen={panel === 'inspector'}
        onChange={isOpen => onPanel(isOpen ? 'inspector' : null)}
      />
      {actions}
    </header>
  )
}

type PanelButtonProps = { name: string; hint?: string; icon: ReactNode; isOpen: boolean; onChange: (isOpen: boolean) => void }

/** On a phone, the icon alone. */
function PanelButton({ name, hint, icon, isOpen, onChange }: PanelButtonProps) {
  return (
    <Button
      kind={isOpen ? 'plain' : 'quiet'}
      onClick={() => onChange(!isOpen)}
      aria-pressed={isOpen}
      aria-label={name}
      title={hint ?? name}
    >
      {icon}
      <span className="max-sm:hidden">{name}</span>
    </Button>
  )
}
