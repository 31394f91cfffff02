/** What task this is, how it is doing, and what can be done about it. */
import { type ConnectionStatus, type FoldedTurn, hasEnded, type Task, type TaskStatus } from '@rivulet/client'
import { Button } from '../shell/elements/button.tsx'
import { BackIcon, InspectIcon, StopIcon } from '../shell/elements/icons.tsx'
import { Link } from '../shell/elements/link.tsx'
import { StatusMark } from '../shell/elements/status-mark.tsx'
import { useNow } from '../shell/hooks/use-now.ts'
import { count, duration } from '../shell/human-units.ts'
import { tokensOf } from '../transcript/turn-usage.ts'
import { ConnectionMark } from './connection-mark.tsx'
import { runningMs } from './running-time.ts'
import type { Stop } from './use-stop.ts'

export type TaskHeaderProps = {
  id: string
  task: Task | null
  status: TaskStatus | null
  turns: readonly FoldedTurn[]
  connection: ConnectionStatus
  isInspecting: boolean
  onInspect(): void
  /** Null when there is nothing to stop. */
  stop: Stop | null
}

export function TaskHeader({ id, task, status, turns, connection, isInspecting, onInspect, stop }: TaskHeaderProps) {
  const isBusy = status !== null && !hasEnded(status)
  const now = useNow(isBusy ? 500 : null)
  const ms = runningMs(turns, now)
  const tokens = turns.reduce((sum, turn) => sum + tokensOf(turn.usage), 0)
  return (
    <header className="flex flex-wrap items-center gap-x-3 gap-y-1 border-b border-line px-3 py-2.5 sm:px-4">
      <Link to="/" aria-label="All tasks" className="rounded-lg p-1.5 text-soft hover:bg-well hover:text-ink">
        <BackIcon />
      </Link>
      <div className="min-w-0 flex-1 basis-44">
        <h1 className="flex items-baseline gap-2 truncate text-[15px] font-semibold">
          {task?.agent ?? '…'}
          <span className="truncate font-mono text-xs font-normal text-faint">{task?.name ?? id}</span>
        </h1>
        <div className="flex flex-wrap items-center gap-x-3 text-[13px] text-soft">
          {status && <StatusMark status={status} />}
          {ms > 0 && <span className="tabular-nums">{duration(ms)}</span>}
          {tokens > 0 && <span>{count(tokens)} tokens</span>}
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
      <Button kind={isInspecting ? 'plain' : 'quiet'} onClick={onInspect} aria-pressed={isInspecting} title="Inspector (i)">
        <InspectIcon />
        Inspector
      </Button>
    </header>
  )
}
