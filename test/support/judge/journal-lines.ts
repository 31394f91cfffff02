/** A viewer's journal as lines, written while it listens, and read back: what a checker judges is what stands there. */
import type { Cursor } from '@rivulet/protocol'
import { type Connection, type Frame, newConnection } from '../viewers/viewer-connection.ts'

export type JournalLine = { viewer: string; task: string; connection: number } & (
  | { opened: { url: string; after: Cursor | null } }
  | { frame: Frame }
  | { closed: Pick<Connection, 'status' | 'retries' | 'oddities' | 'comments' | 'isCut'> }
)

export type Journal = {
  task: string
  connections: Connection[]
  /** Turns whose acceptance their client learned only after this viewer had left. */
  laterTurns?: number[]
}

export function journalsOf(lines: readonly JournalLine[]): Journal[] {
  const journals = new Map<string, Journal>()
  for (const line of lines) {
    const journal = journals.get(line.viewer) ?? { task: line.task, connections: [] }
    journals.set(line.viewer, journal)
    if ('opened' in line) journal.connections[line.connection] = newConnection(line.opened.url, line.opened.after)
    const connection = journal.connections[line.connection]
    if (connection && 'frame' in line) connection.frames.push(line.frame)
    if (connection && 'closed' in line) Object.assign(connection, line.closed, { isOpen: false })
  }
  return [...journals.values()]
}
