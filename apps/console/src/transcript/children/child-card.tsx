/** A child of a turn, with its own transcript as it grows. All children of a page come by one connection. */
import { hasEnded, type Wait } from '@rivulet/client'
import { useTasks } from '@rivulet/client/react'
import { useState } from 'react'
import { ChevronIcon } from '../../shell/elements/icons.tsx'
import { Link } from '../../shell/elements/link.tsx'
import { StatusMark } from '../../shell/elements/status-mark.tsx'
import { taskPath } from '../../shell/route.ts'
import { useSession } from '../../shell/session.tsx'
import { ToolCard } from '../contents/tool-card.tsx'
import { MessageRow } from '../message-row.tsx'
import { type Row, rowsOf } from '../rows.ts'

export function ChildCard({ wait: { name, status }, child }: { wait: Wait; child: string }) {
  const { may, shared } = useSession()
  const canRead = may('tasks:read') && shared === null
  const [choice, setChoice] = useState<boolean | null>(null)
  const isOpen = canRead && (choice ?? status === 'open')
  return (
    <section aria-label={`Child ${name}`} className="rounded-lg border border-line bg-panel text-[13px]">
      <header className="flex items-center gap-2 px-3 py-2">
        {canRead && (
          <button
            type="button"
            aria-expanded={isOpen}
            onClick={() => setChoice(!isOpen)}
            className="flex min-w-0 items-center gap-1 hover:text-accent"
          >
            <span className={`transition-transform ${isOpen ? 'rotate-90' : ''}`}>
              <ChevronIcon />
            </span>
            <span className="truncate font-medium">{name}</span>
          </button>
        )}
        {!canRead && <span className="truncate font-medium">{name}</span>}
        <span className="grow" />
        {!isOpen && <span className="text-soft">{status === 'open' ? 'at work' : 'ended'}</span>}
        <Link to={taskPath(child)} className="text-accent hover:underline">
          Open
        </Link>
      </header>
      {isOpen && <ChildTranscript id={child} />}
    </section>
  )
}

function ChildTranscript({ id }: { id: string }) {
  const [view] = useTasks([id])
  if (!view?.status) return <p className="border-t border-line px-3 py-2 text-soft">Loading …</p>
  const rows = rowsOf(view.messages, view.turns, { isFromStart: view.messagesFrom === 0, isToEnd: true })
  return (
    <div className="space-y-3 border-t border-line px-3 py-3">
      <p className="flex items-center gap-3 text-soft">
        <StatusMark status={view.status} />
        {view.task?.agent}
      </p>
      {rows.map(row => (
        <ChildRow key={row.key} row={row} />
      ))}
      {rows.length === 0 && !hasEnded(view.status) && <p className="text-soft">It has said nothing yet.</p>}
    </div>
  )
}

function ChildRow({ row }: { row: Row }) {
  if (row.kind === 'message') return <MessageRow message={row.message} />
  if (row.kind === 'tool') return <ToolCard request={row.request} response={row.response} isOver={row.isOver} />
  if (row.kind === 'wait' && row.wait.child) return <ChildCard wait={row.wait} child={row.wait.child} />
  if (row.kind === 'outcome' && row.turn.error) return <p className="text-bad">{row.turn.error.message}</p>
  return null
}
