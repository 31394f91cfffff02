/**
 * The life of one task without a process: its rows, its log, and what happens to both, one atomic step at a time, so that a test can put
 * anything else between two steps. The log can lose its end or all of itself; then it is opened anew, under the rules of the real one.
 */
import { decodeByteText, encodeByteText, encodeEvent, type LogEntry, type LogState, type Push } from '@rivulet/broker'
import {
  applyEvent,
  type Content,
  type Cursor,
  closingEvents,
  createTurnComposer,
  type Event,
  emptyState,
  epochOf,
  formatCursor,
  hasEnded,
  type Message,
  messagesOf,
  origin,
  outcomeOf,
  seqOf,
  type Task,
  type TaskState,
  type Turn,
  type TurnComposer,
  type Update,
} from '@rivulet/protocol'

export type TaskWorld = {
  task: Task
  /** Does the next thing; false when the task has come to rest. */
  step(): boolean
  /** What Postgres has, now. */
  rows(): {
    task: Task
    turns: Turn[]
    messages: Message[]
    nextIndex: number
    starts: { turnNumber: number; index: number }[]
    state: null
    epoch: number
  }
  /** Their version, and the cursor behind the task's last end, once that is announced. */
  version(): { epoch: number; endCursor: Cursor | null }
  log: { state(): LogState | null; read(from: Cursor, count: number, to?: Cursor): LogEntry[] }
  /** Loses the last entries, as a Redis that restarts without the end of its file. */
  cut(count: number): void
  /** Loses everything, as when it has expired. */
  empty(): void
}

type Log = {
  epoch: number
  seq: number
  previous: Cursor
  begin?: Cursor
  isWhole: boolean
  isStale: boolean
  /** Turns before this one are left to Postgres. */
  first: number
  entries: (LogEntry & { key?: string })[]
}
type Keyed = { key?: string; event: Event }
type Common = { task: string; turn: number; attempt: number; at: number }

export function createTaskWorld({ random, onPush }: { random: () => number; onPush: (push: Push) => void }): TaskWorld {
  const at = '2026-01-01T00:00:00.000Z'
  const id = '0198c0de-0000-7000-8000-000000000001'
  const task: Task = { id, agent: 'scripted', status: 'queued', params: null, metadata: {}, createdAt: at, updatedAt: at }
  const turns: Turn[] = []
  const messages: Message[] = []
  /** Turns whose end stood in the log once: Postgres remembers that. */
  const announced = new Set<number>()
  let epoch = 1
  /** The epoch of the claim that runs, or ran last. */
  let claimed = 1
  let log: Log | null = null
  let endCursor: Cursor | null = null
  let clock = Date.parse(at)
  const life = live()

  return {
    task,
    step: () => !life.next().done,
    rows: () => ({
      task: { ...task },
      turns: turns.map(turn => ({ ...turn })),
      messages: messages.slice(),
      ...places(),
      state: null,
      epoch,
    }),
    version: () => ({ epoch, endCursor: turns.every(({ number }) => announced.has(number)) ? endCursor : null }),
    log: { state, read },
    cut,
    empty: () => {
      log = null
    },
  }

  /** Where messages belong. */
  function places(): { nextIndex: number; starts: { turnNumber: number; index: number }[] } {
    const first = messages.filter(({ turn: turnNumber }, i) => turnNumber !== messages[i - 1]?.turn)
    return { nextIndex: messages.length, starts: first.map(({ turn: turnNumber, index }) => ({ turnNumber, index })) }
  }

  function* live(): Generator<void> {
    const count = 1 + pick(3)
    for (let number = 1; number <= count; number += 1) {
      if (!turns[number - 1]) yield* queue(number)
      // A cancel ends what waits as well.
      if (hasEnded(turnOf(number).status)) continue
      // Now and then the next input is there before this turn begins, or while it runs.
      if (number < count && !turns[number] && chance(0.4)) yield* queue(number + 1)
      const running = run(number, number < count && !turns[number] && chance(0.5))
      if (chance(0.25)) yield* cancelAfter(pick(16), running, number)
      else yield* running
    }
  }

  /** No worker can continue the log, whatever it was doing. */
  function* cancelAfter(steps: number, running: Generator<void>, number: number): Generator<void> {
    for (let i = 0; i < steps && !running.next().done; i += 1) yield
    if (hasEnded(turnOf(number).status)) yield* running
    else yield* cancel(number)
  }

  function* cancel(number: number): Generator<void> {
    const begun = turnOf(number).attempt > 0 ? turnOf(number) : null
    const ended = waiting().filter(turn => turn !== begun)
    for (const turn of ended) end(turn, 'canceled')
    change()
    if (begun) {
      const common = { task: id, turn: number, attempt: begun.attempt, at: tick() }
      const first = messages.findIndex(message => message.turn === number)
      const firstIndex = messages.length
      const started = { key: `started:${claimed}`, event: startedEvent(common, firstIndex, first) }
      yield
      if (isAlive()) raise([...owed(number), queuedEvent(number), started])
      yield
      const said = saidSince(claimed)
      const closings = closingEvents(said, { ...common, status: 'aborted' })
      const closed = closings.reduce((state, event, i) => applyEvent(state, event, formatCursor(epoch, 1_000_000 + i)), said)
      messages.push(...agentMessages(closed))
      end(begun, 'canceled')
      task.status = 'canceled'
      change()
      yield
      const keyed = closings.map(event => ({ key: `closed:${number}:${event.index}`, event }))
      yield* announce([...[begun, ...ended].map(turn => queuedEvent(turn.number)), ...keyed, ...[begun, ...ended].map(finishedEvent)])
    } else {
      task.status = 'canceled'
      yield
      yield* announce([...ended.map(turn => queuedEvent(turn.number)), ...ended.map(finishedEvent)])
    }
  }

  function* queue(number: number): Generator<void> {
    const input: Content | undefined = chance(0.7) ? { type: 'text', text: `input ${number}`, format: 'plain' } : undefined
    const turn: Turn = {
      id: `0198c0de-0000-7000-9000-00000000000${number}`,
      task: id,
      number,
      status: 'queued',
      attempt: 0,
      queuedAt: time(),
    }
    turns.push({ ...turn, ...(input && { input }) })
    if (task.status !== 'running') task.status = 'queued'
    if (number > 1) change()
    yield
    if (number > 1) yield* announce([queuedEvent(number)])
    else open([])
    if (number === 1) yield
  }

  function* run(number: number, isInterleaved: boolean): Generator<void> {
    const failures = chance(0.25) ? 1 : 0
    const first = messages.length
    for (let attempt = 1; attempt <= failures + 1; attempt += 1) {
      const common = () => ({ task: id, turn: number, attempt, at: tick() })
      claim(number, attempt, first)
      yield
      const firstIndex = messages.length
      const begin = () => start(number, () => ({ key: `started:${claimed}`, event: startedEvent(common(), firstIndex, first) }))
      yield* begin()
      const composer = createTurnComposer({ task: id, turn: number, attempt, firstIndex }, { now: tick })
      yield* speak(composer, begin)
      if (isInterleaved && attempt === 1) yield* queue(number + 1)
      yield* append(composer, begin, composer.closeAll(attempt <= failures ? 'failed' : 'complete'))
      // The server folds what the log has; where that is not all of it, the worker says it again.
      while (!isOpen()) yield* reopen(composer, begin)
      if (attempt > failures) commit(number, agentMessages(saidSince(claimed)))
      else Object.assign(turnOf(number), { status: 'queued' })
      change()
      task.status = waiting().length > 0 ? 'queued' : 'completed'
      yield
    }
    yield* announce([...owed(number + 1), ...waiting().map(({ number: next }) => queuedEvent(next))])
  }

  /** The start of a claim: in the log that is there, or in one that is opened anew, under an epoch that no log had before. */
  function* start(number: number, started: () => Keyed): Generator<void> {
    if (isAlive() && log && log.epoch <= claimed) {
      raise([...owed(number), queuedEvent(number), started()], claimed)
    } else {
      change()
      claimed = epoch
      yield
      open([started()])
    }
    yield
  }

  function* speak(composer: TurnComposer, begin: () => Generator<void>): Generator<void> {
    const steps = 1 + pick(12)
    for (let i = 0; i < steps; i += 1) {
      const index = Math.min(composer.nextIndex(), pick(3))
      const isOpen = composer.messageAt(index)?.status === 'streaming'
      yield* append(composer, begin, composer.compose(isOpen || !composer.messageAt(index) ? someUpdate(composer, index) : notice()))
    }
  }

  function someUpdate(composer: TurnComposer, index: number): Update {
    const type = composer.messageAt(index)?.content.type
    if (type && chance(0.1)) return { type: 'done', index }
    if (type === 'data' || (!type && chance(0.2))) return { type: 'full', index, content: { type: 'data', data: { pick: pick(9) } } }
    if (type === 'tool_request') return { type: 'delta', index, delta: { type: 'tool_request', text: ' ' } }
    if (!type && chance(0.2)) return { type: 'delta', index, delta: { type: 'tool_request', text: '{"a":1}' } }
    return { type: 'delta', index, delta: { type: 'text', text: `${'w\u00f6rd\n\u{1f30a} '.repeat(pick(4))}.` } }
  }

  function notice(): Update {
    return { type: 'custom', name: 'tick', data: pick(9) }
  }

  /** The worker's end: what the log does not take is said again in a new epoch. */
  function* append(composer: TurnComposer, begin: () => Generator<void>, events: Event[]): Generator<void> {
    if (events.length === 0) return
    if (isOpen()) {
      write(events.map(event => ({ event })))
      yield
    } else {
      yield* reopen(composer, begin)
    }
  }

  function* reopen(composer: TurnComposer, begin: () => Generator<void>): Generator<void> {
    change()
    claimed = epoch
    yield
    yield* begin()
    yield* append(composer, begin, composer.rewrite())
  }

  function isOpen(): boolean {
    return isAlive() && log?.epoch === claimed
  }

  function isAlive(): boolean {
    return log !== null && !log.isStale
  }

  /** The rows have changed. */
  function change(): void {
    epoch += 2 - (epoch % 2)
  }

  function saidSince(from: number): TaskState {
    const entries = (log?.entries ?? []).filter(({ cursor }) => epochOf(cursor) >= from)
    const events = entries.map(({ json, cursor }) => ({ event: JSON.parse(decodeByteText(json)) as Event, cursor }))
    return events.reduce((before, { event, cursor }) => applyEvent(before, event, cursor), emptyState)
  }

  function agentMessages(state: TaskState): Message[] {
    return messagesOf(state).filter(({ author }) => author !== 'user')
  }

  function claim(number: number, attempt: number, first: number): void {
    const turn = turnOf(number)
    change()
    claimed = epoch
    Object.assign(turn, { status: 'running', attempt, startedAt: turn.startedAt ?? time() })
    task.status = 'running'
    if (turn.input && messages.length === first) {
      const message = { task: id, index: first, turn: number, attempt: 1, author: 'user' as const, content: turn.input, metadata: {} }
      messages.push({ ...message, status: 'complete', createdAt: turn.queuedAt, finishedAt: time() })
    }
  }

  function commit(number: number, said: Message[]): void {
    messages.push(...said)
    end(turnOf(number), 'completed')
  }

  function end(turn: Turn, status: 'completed' | 'canceled'): void {
    Object.assign(turn, { status, stopReason: status === 'completed' ? 'stop' : 'aborted', finishedAt: time() })
  }

  /** The server's end, where the log stands. One that is gone or stale is opened anew. */
  function* announce(entries: Keyed[]): Generator<void> {
    if (isAlive()) {
      write(entries)
    } else if (task.status !== 'running') {
      // While a turn runs, its worker is the one to open the log, and says what is owed.
      change()
      yield
      open([])
    }
    yield
  }

  /** With every turn whose end no log has told. */
  function open(entries: Keyed[]): void {
    const unannounced = turns.filter(({ number }) => !announced.has(number))
    const isTold = unannounced.every(
      ({ number, status }) => !hasEnded(status) || !messages.some(({ turn: turnNumber }) => turnNumber === number),
    )
    const first = unannounced[0]?.number ?? 1
    const anew = { epoch, seq: 0, first, isStale: false }
    const begin = formatCursor(epoch, 0)
    if (log) log = { ...log, ...anew, previous: begin, begin, isWhole: false, entries: log.entries.map(withoutKey) }
    else log = { ...anew, previous: origin, isWhole: first === 1 && isTold, entries: [] }
    write([...unannounced.flatMap(tell), ...entries], origin)
  }

  function raise(entries: Keyed[], to = epoch): void {
    if (!log) return
    const { kept, waiting: carried } = chance(0.3) ? trimmed(log) : { kept: log, waiting: [] }
    log = { ...kept, epoch: to, seq: log.epoch === to ? log.seq : 0, previous: positionOf(log) }
    write([...carried, ...entries])
  }

  function tell(turn: Turn): Keyed[] {
    return [queuedEvent(turn.number), ...(hasEnded(turn.status) ? [finishedEvent(turn)] : [])]
  }

  function withoutKey({ cursor, json }: LogEntry): LogEntry {
    return { cursor, json }
  }

  /** Whole turns only, from the first on. One that still waits is announced again. */
  function trimmed(from: Log): { kept: Log; waiting: Keyed[] } {
    const end = from.entries.findLastIndex(({ key }) => key?.startsWith('finished:'))
    if (end === -1) return { kept: from, waiting: [] }
    const isEnded = (key: string) => from.entries.some(entry => entry.key === key.replace('queued', 'finished'))
    const gone = from.entries.slice(0, end + 1).filter(({ key }) => key?.startsWith('queued:') && !isEnded(key))
    const waiting = gone.map(({ key = '', json }) => ({ key, event: JSON.parse(decodeByteText(json)) as Event }))
    return { kept: { ...from, isWhole: false, entries: from.entries.slice(end + 1) }, waiting }
  }

  function write(entries: Keyed[], followed?: Cursor): void {
    const open = log
    if (!open) return
    const previous = followed ?? positionOf(open)
    const added = entries.flatMap(({ key, event }) => {
      if (key && (open.entries.some(entry => entry.key === key) || isDone(open, key))) return []
      open.seq += 1
      const { index, json } = encodeEvent(event)
      const entry = { cursor: formatCursor(open.epoch, open.seq), index, json: encodeByteText(json), ...(key && { key }) }
      open.entries.push(entry)
      return [entry]
    })
    endCursor = positionOf(open)
    for (const { event } of entries) if (event.type === 'turn.finished') announced.add(event.turn)
    if (added.length > 0) onPush({ task: id, previous, entries: added.map(withoutKey) })
  }

  /** Whether the log leaves the turn to Postgres, or has its end already. */
  function isDone({ first, entries }: Log, key: string): boolean {
    const [kind, turnNumber] = key.split(':')
    if (kind === 'started') return false
    return Number(turnNumber) < first || (kind !== 'finished' && entries.some(entry => entry.key === `finished:${turnNumber}`))
  }

  function cut(count: number): void {
    if (!log) return
    log.entries.splice(-count)
    const last = log.entries.at(-1)
    const { begin, ...rest } = log
    // Where it was begun anew is lost with the epoch in which it was.
    const kept = begin && last && epochOf(begin) <= epochOf(last.cursor) ? { begin } : {}
    log = last ? { ...rest, ...kept, epoch: epochOf(last.cursor), seq: seqOf(last.cursor), isStale: true } : null
  }

  function state(): LogState | null {
    if (!log) return null
    const { epoch: raised, isWhole, isStale, begin } = log
    return { cursor: positionOf(log), epoch: raised, number: 0, isWhole, isStale, ...(begin && { begin }) }
  }

  function read(from: Cursor, count: number, to?: Cursor): LogEntry[] {
    const isAfter = (a: Cursor, b: Cursor) => epochOf(a) - epochOf(b) || seqOf(a) - seqOf(b)
    const found = (log?.entries ?? []).filter(({ cursor }) => isAfter(cursor, from) >= 0 && (!to || isAfter(cursor, to) <= 0))
    return found.slice(0, count).map(({ cursor, json }) => ({ cursor, json }))
  }

  /** Turns before this one that have ended and were not announced yet. What was announced and lost is not announced again. */
  function owed(number: number): Keyed[] {
    return turns.filter(turn => turn.number < number && hasEnded(turn.status) && !announced.has(turn.number)).flatMap(tell)
  }

  function finishedEvent({ number: turnNumber, attempt, status, stopReason = 'other' }: Turn): Keyed {
    if (!hasEnded(status)) throw new Error(`Turn ${turnNumber} has not ended`)
    return {
      key: `finished:${turnNumber}`,
      event: { type: 'turn.finished', task: id, turn: turnNumber, attempt, at: tick(), status: outcomeOf(status), stopReason },
    }
  }

  function queuedEvent(number: number): Keyed {
    const { input } = turnOf(number)
    const common = { task: id, turn: number, attempt: 0, at: Date.parse(turnOf(number).queuedAt) }
    return { key: `queued:${number}`, event: { type: 'turn.queued', ...common, ...(input && { input }) } }
  }

  function startedEvent(common: Common, firstIndex: number, first: number): Event {
    const input = turnOf(common.turn).input && messages[first]
    return { type: 'turn.started', ...common, firstIndex, ...(input && { input }) }
  }

  function waiting(): Turn[] {
    return turns.filter(({ status }) => status === 'queued')
  }

  function turnOf(number: number): Turn {
    const turn = turns[number - 1]
    if (!turn) throw new Error(`There is no turn ${number}`)
    return turn
  }

  function positionOf({ epoch: of, seq, previous }: Log): Cursor {
    return seq === 0 ? previous : formatCursor(of, seq)
  }

  function tick(): number {
    clock += 1
    return clock
  }

  function time(): string {
    return new Date(tick()).toISOString()
  }

  function pick(below: number): number {
    return Math.floor(random() * below)
  }

  function chance(of: number): boolean {
    return random() < of
  }
}
