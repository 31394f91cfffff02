/**
 * Transactions that hold the row of a task, one after the other in this process. They line up before they take a connection, so that many calls of one task
 * leave the connections to the calls of others. Calls of other processes wait for the row in Postgres.
 */
import { RivuletError, type TaskId } from '@rivulet/protocol'
import type { Database, Transaction } from '../connection/database.ts'

/** For as long as our client waits for a response: a hundred calls take 20 s on a busy machine. */
const patienceMs = 30_000

export class TaskLine {
  readonly #patienceMs: number
  readonly #ends = new Map<TaskId, Promise<void>>()

  constructor(patience = patienceMs) {
    this.#patienceMs = patience
  }

  async run<T>(task: TaskId, work: () => Promise<T>): Promise<T> {
    const before = this.#ends.get(task)
    let leave = () => {}
    const left = new Promise<void>(resolve => {
      leave = resolve
    })
    // A call that gives up leaves its place, and those behind it still wait for those before it.
    const end = before ? before.then(() => left) : left
    this.#ends.set(task, end)
    void end.then(() => {
      if (this.#ends.get(task) === end) this.#ends.delete(task)
    })
    try {
      if (before) await this.#reach(before)
      return await work()
    } finally {
      leave()
    }
  }

  async #reach(place: Promise<void>): Promise<void> {
    let timer: NodeJS.Timeout | undefined
    const late = new Promise<'late'>(resolve => {
      timer = setTimeout(resolve, this.#patienceMs, 'late')
    })
    const reached = await Promise.race([place, late])
    clearTimeout(timer)
    if (reached === 'late') throw new RivuletError('dependency_unavailable', 'The task is busy with other calls; retry')
  }
}

/** Each tenant has lines of its own, because a call of a tenant lines up before it is known whose task it names. */
const lines = new WeakMap<Database, TaskLine>()

/** A transaction that holds the row of this task. */
export function taskTransaction<T>(db: Database, task: TaskId, work: (tx: Transaction) => Promise<T>): Promise<T> {
  const line = lines.get(db) ?? new TaskLine()
  lines.set(db, line)
  return line.run(task, () => db.transaction(work))
}
