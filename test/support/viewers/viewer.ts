/**
 * A viewer of a task, as an honest client: it writes every frame into a journal, folds what it hears, and comes back with its last cursor
 * whenever a connection ends before `end`, to the next of the APIs it knows. It judges nothing; `judge.ts` does, afterwards.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { applyEvent, type Cursor, emptyState, messagesOf, RivuletError, restoreState, type TaskState } from '@rivulet/protocol'
import { onFailure, onFileEnd } from '../engines/file-end.ts'
import type { Journal, JournalLine } from '../judge/journal-lines.ts'
import { type Patience, until as poll } from '../until.ts'
import { type Connection, type Frame, type OpenConnection, openConnection } from './viewer-connection.ts'

export type { Journal } from '../judge/journal-lines.ts'

export type Viewer = {
  journal: Journal
  /** The fold of what it has heard. */
  state(): TaskState
  /** The text of the newest message that has one. */
  text(): string
  /** Every frame so far, over all connections. */
  frames(): Frame[]
  /** Where it would resume. */
  cursor(): Cursor | null
  /** Resolves when it has received `end` or a final status, or was stopped. */
  ended: Promise<Journal>
  until(what: string, condition: (viewer: Viewer) => boolean, patience?: Patience): Promise<void>
  /** Drops the connection as it is; the viewer comes back. */
  cut(): void
  /** Stops reading its socket. */
  pause(): void
  resume(): void
  /** Leaves, and does not come back. */
  stop(): Promise<Journal>
}

export type WatchOptions = {
  /** Connection n goes to the n-th of these, from the first on again after the last. */
  urls: readonly string[]
  /** What the URL says, in every connection. */
  query?: string
  /** A cursor that it brings along, without knowing what came before. */
  after?: Cursor
  /** What it has heard before, from the start on: it comes back with the last cursor of this. */
  past?: readonly Frame[]
  /** After how many events of the log a connection is cut, by its place. Default: never. */
  cutAfter?: (connection: number) => number | null
  /** Responses that it treats as final. Default 204: everything else but 200 is tried again. */
  finalStatuses?: readonly number[]
  /** Told of each connection and frame as it comes. */
  record?: (line: JournalLine) => void
}

let viewers = 0

/** Those that would come back. They leave when a test fails or its file ends, because each would ask fifty times a second for as long as the process lives. */
const present = new Set<Viewer>()
let leavesWithTheTest = false

export function watch(task: string, options: WatchOptions): Viewer {
  const { urls, query = '', after = null, past = [], cutAfter = () => null, finalStatuses = [204], record } = options
  const viewer = `viewer ${++viewers}`
  const journal: Journal = { task, connections: [] }
  let state = emptyState
  let last: Cursor | null = after
  let current: OpenConnection | null = null
  let isOver = false
  let isPaused = false
  if (past.length > 0) journal.connections.push({ ...pastConnection, frames: [...past] })
  past.forEach(hear)
  const ended = run()
  const self: Viewer = {
    ...{ journal, state: () => state, text: () => newestText(state), cursor: () => last, ended, until, pause, resume, stop },
    frames: () => journal.connections.flatMap(({ frames }) => frames),
    cut: () => current?.cut(),
  }
  stopWithTheTest()
  present.add(self)
  void ended.finally(() => present.delete(self))
  return self

  async function run(): Promise<Journal> {
    while (!isOver) {
      const place = journal.connections.length
      const url = `${urls[place % urls.length]}/v1/tasks/${task}/events${query}`
      const limit = cutAfter(place)
      let heard = 0
      const about = { viewer, task, connection: place }
      record?.({ ...about, opened: { url, after: last } })
      current = openConnection({
        ...{ url, after: last },
        onFrame: frame => {
          hear(frame)
          record?.({ ...about, frame })
          if (isLogged(frame)) heard += 1
          return limit === null || heard < limit
        },
      })
      if (isPaused) current.pause()
      journal.connections.push(current.connection)
      await current.closed
      const { status, retries, oddities, comments, isCut } = current.connection
      record?.({ ...about, closed: { status, retries, oddities, comments, isCut } })
      if (finalStatuses.includes(status)) isOver = true
      // Refused or unreachable: a real client waits for seconds here.
      else if (status !== 200) await sleep(20)
    }
    return journal
  }

  function hear(frame: Frame): void {
    last = frame.id
    if (frame.data.type === 'end' || frame.data.type === 'deleted') isOver = true
    try {
      state = foldFrame(state, frame)
    } catch (error) {
      // The judge folds the journal again, and says so.
      if (!(error instanceof RivuletError)) throw error
    }
  }

  function until(what: string, condition: (viewer: Viewer) => boolean, patience?: Patience): Promise<void> {
    return poll(`a viewer of ${task}: ${what}`, () => condition(self), patience).then(() => {})
  }

  function pause(): void {
    isPaused = true
    current?.pause()
  }

  function resume(): void {
    isPaused = false
    current?.resume()
  }

  async function stop(): Promise<Journal> {
    isOver = true
    current?.cut()
    return ended
  }
}

function stopWithTheTest(): void {
  if (leavesWithTheTest) return
  leavesWithTheTest = true
  const stopAll = () => Promise.all([...present].map(viewer => viewer.stop()))
  const forget = onFailure(() => void stopAll())
  onFileEnd(async () => {
    leavesWithTheTest = false
    forget()
    await stopAll()
  })
}

/** For every cursor, a viewer that has everything up to it, and reconnects. */
export function resumeAtEvery(task: string, past: readonly Frame[], urls: readonly string[]): Viewer[] {
  return past.map((_, i) => watch(task, { urls: [urls[i % urls.length] ?? ''], past: past.slice(0, i + 1) }))
}

/** The texts of its messages, in order; null for one that is no text. */
export function textsOf(viewer: Viewer): (string | null)[] {
  return Array.from(viewer.state().messages, ({ content }) => (content.type === 'text' ? content.text : null))
}

const pastConnection: Connection = {
  ...{ url: '?from=start', after: null, status: 200, headers: {}, frames: [], retries: [1_000], comments: [], oddities: [] },
  ...{ isOpen: false, isCut: true },
}

/** What a frame does to a client's fold. Throws where its delta does not begin where the message ends. */
export function foldFrame(state: TaskState, { id, data }: Frame): TaskState {
  switch (data.type) {
    case 'snapshot': {
      const { task, turns, messages, messagesFrom } = data
      return restoreState(id, { status: task.status, turns, messages, messagesFrom })
    }
    case 'caught_up':
    case 'end':
    case 'deleted':
      return state
    default:
      return applyEvent(state, data, id)
  }
}

/** Whether a frame stands in the log. */
export function isLogged({ data }: Frame): boolean {
  return !['snapshot', 'caught_up', 'end', 'deleted'].includes(data.type)
}

function newestText(state: TaskState): string {
  const texts = messagesOf(state).flatMap(({ content }) => (content.type === 'text' ? [content.text] : []))
  return texts.at(-1) ?? ''
}
