/** What a run of the bench leaves to be judged: what clients were promised and told, what workers did, what is stored, and the logs. */

import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { ClaimResult } from '@rivulet/contract/internal'
import type { Message } from '@rivulet/protocol'
import type { Failpoint } from '@rivulet/runtime/failpoint'
import { type Journal, type JournalLine, journalsOf } from '../../support/judge/journal-lines.ts'
import type { LoggedEvent } from '../../support/judge/task-laws.ts'
import type { TaskDetail } from '../../support/platform/platform-client.ts'
import type { Story } from './story.ts'

/** A 201 or 202. */
export type Promised = { task: string; story: Story }

/** What a client read at once when it heard `turn.finished`. */
export type Look = { task: string; turnNumber: number; detail: TaskDetail; messages: Message[] }

/** An answer to a wait that got a 200. */
export type Answered = { task: string; wait: string; action: string }

/** A claim that a worker was given. An agent that records its run itself does not know the epoch. */
export type Run = { pid: number; task: string; turnNumber: number; attempt: number; epoch?: number }

/** One answered append. */
export type Appended = { task: string; epoch: number; first: number; events: string[]; result: string }

export type Stored = { detail: TaskDetail; messages: Message[] }

export type History = {
  promised: Promised[]
  viewers: Journal[]
  looks: Look[]
  answered: Answered[]
  runs: Run[]
  appends: Appended[]
  stored: Stored[]
  /** Logs that are whole. */
  logs: ReadonlyMap<string, LoggedEvent[]>
  /** Whether Redis lost something. */
  hasLost: boolean
}

export type ClientLine = JournalLine | { promised: Promised } | { look: Look } | { answered: Answered }

/** Of a failpoint of ours, or of an agent in a worker of another version, which has no failpoints. */
type WorkerLine = { at: number; pid: number; point: Failpoint; values: unknown[] } | { ran: Run }

export function readClients(file: string): Pick<History, 'promised' | 'viewers' | 'looks' | 'answered'> {
  const lines = readLines<ClientLine>(file)
  return {
    promised: lines.flatMap(line => ('promised' in line ? [line.promised] : [])),
    looks: lines.flatMap(line => ('look' in line ? [line.look] : [])),
    answered: lines.flatMap(line => ('answered' in line ? [line.answered] : [])),
    viewers: viewersIn(lines),
  }
}

/** All clients write to one file, so the order of its lines is the order in which they learned something. */
function viewersIn(lines: readonly ClientLine[]): Journal[] {
  const names = [...new Set(lines.flatMap(line => ('viewer' in line ? [line.viewer] : [])))]
  return names.flatMap(name => {
    const own = lines.filter(line => 'viewer' in line && line.viewer === name) as JournalLine[]
    const later = lines.slice(lines.indexOf(own.at(-1) as ClientLine)).flatMap(line => ('promised' in line ? [line.promised] : []))
    return journalsOf(own).map(journal => ({
      ...journal,
      laterTurns: later.filter(({ task }) => task === journal.task).map(({ story }) => story.turnNumber),
    }))
  })
}

/** What the journals of all workers, one for each process, say of these tasks. */
export function readWorkers(folder: string, tasks: ReadonlySet<string>): Pick<History, 'runs' | 'appends'> {
  const lines = readdirSync(folder).flatMap(name => (/^\d+\.ndjson$/.test(name) ? readLines<WorkerLine>(join(folder, name)) : []))
  const isMeant = ({ task }: { task: string }) => tasks.has(task)
  return { runs: lines.flatMap(runsIn).filter(isMeant), appends: lines.flatMap(appendsIn).filter(isMeant) }
}

function runsIn(line: WorkerLine): Run[] {
  if ('ran' in line) return [line.ran]
  if (line.point !== 'claim answered') return []
  const [claim] = line.values as [ClaimResult]
  if (claim.result !== 'claimed') return []
  return [{ pid: line.pid, task: claim.task.id, turnNumber: claim.turn.number, attempt: claim.attempt, epoch: claim.epoch }]
}

function appendsIn(line: WorkerLine): Appended[] {
  if ('ran' in line || line.point !== 'appended') return []
  const [batch, results] = line.values as [
    { append: { task: string; epoch: number; first: number; entries: { json: string }[] } }[],
    string[],
  ]
  return batch.map(({ append: { task, epoch, first, entries } }, i) => ({
    ...{ task, epoch, first, result: results[i] ?? 'none' },
    events: entries.map(({ json }) => json),
  }))
}

/** The last line of a process that was killed may be cut off. */
function readLines<T>(file: string): T[] {
  const lines = readFileSync(file, 'utf8').split('\n').slice(0, -1)
  return lines.map(line => JSON.parse(line) as T)
}
