/**
 * The log of a task: a Redis stream whose ids are `<epoch>-<seq>`, and a hash with its position.
 *
 * Workers append numbered entries, for many logs in one call. The server announces keyed entries and raises the epoch. Readers receive each push
 * with the cursor before it, and read older entries from the stream. The scripts reject a writer with an older epoch, and never continue a log
 * that may have lost entries under the same epoch.
 */
import type { AppendResult } from '@rivulet/contract/internal'
import { type Cursor, defaultLimits, type Event, formatCursor, origin, parseCursor, type TaskId, type TurnId } from '@rivulet/protocol'
import { type ByteText, charsOf, cutByteText, readByteText } from './byte-text.ts'
import { type Channels, publish } from './channels.ts'
import type { RedisConnection } from './connections.ts'
import type { Keys } from './keys.ts'
import { createScript } from './script.ts'
import { tellAnswered, tellWorker } from './worker-channel.ts'

export type { AppendResult }

type AnnounceResult = 'ok' | 'missing' | 'fenced' | 'gap'

/**
 * One worker's entries for one log; `first` is the number of the first of them, counted from 1 in each epoch. With `last`, the entries stand for the
 * numbers up to it, however many entries they are, and are written only right after number `first - 1`.
 */
export type Append = { task: TaskId; epoch: number; first: number; last?: number; entries: readonly EncodedEvent[] }

/** `cursor`: of the last entry in the epoch, if they were written. */
export type Appended = { result: 'ok'; cursor: Cursor } | { result: Exclude<AppendResult, 'ok'> }

export type EncodedEvent = { index: number | null; json: string }

export type Announcement = {
  task: TaskId
  /** Raises the log to this epoch. Without it, entries are appended under the log's current epoch. */
  epoch?: number
  /**
   * Whether the epoch also opens a log that is absent or stale. Not for an epoch that may have had a log before, because a cursor of that log would
   * then be given to another entry. Default true.
   */
  opens?: boolean
  /** A log opened by this call holds the task's whole history. Default false. */
  whole?: boolean
  /** A log opened by this call leaves the turns before this one to Postgres: they have ended, and nothing is written about them. */
  first?: number
  /** Whether a turn is running afterwards. Without it, that does not change. */
  running?: boolean
  /** An entry whose key the log already has is not written again. */
  entries: readonly { key: string; event: Event }[]
}

/** `index`: of the message that the event is about, or null; undefined where its writer left it out. The log keeps it beside the JSON, so readers parse less. */
export type LogEntry = { cursor: Cursor; index?: number | null | undefined; json: ByteText }

/** The message that subscribers receive when a log grows: the entries, and the cursor before them. */
export type Push = { task: TaskId; previous: Cursor; entries: LogEntry[] }

export type LogState = {
  cursor: Cursor
  epoch: number
  /** The number of the worker's last append in this epoch. */
  number: number
  /** Whether the log still begins where the task began. */
  isWhole: boolean
  /** The log was raised before Redis restarted: its end may be lost, and it continues only in a later epoch. */
  isStale: boolean
  /** The log may lack entries before this cursor, because it was restarted here. */
  begin?: Cursor
}

/** What subscribers of a log receive when its task was removed. */
const removedMessage = 'removed'

export type LogWriter = ReturnType<typeof createLogWriter>
export type LogAnnouncer = ReturnType<typeof createLogAnnouncer>
export type TurnLogReader = ReturnType<typeof createLogReader>

/** For readers of whole logs. */
export type LogReader = Omit<TurnLogReader, 'hasTurn'>

export function encodeEvent(event: Event): EncodedEvent {
  return { index: messageIndexOf(event), json: JSON.stringify(event) }
}

/** Null for an event that is not about one message. */
export function messageIndexOf(event: Event): number | null {
  return 'index' in event ? (event.index ?? null) : null
}

/** A second limit, behind the worker's own limit of a turn's output. A log may be larger, because every entry repeats its task, turn and time. */
const maxLogBytes = 8 * defaultLimits.turnBytes

/** For workers, and for the API on behalf of workers without Redis. */
export function createLogWriter({ redis, keys, maxBytes = maxLogBytes }: { redis: RedisConnection; keys: Keys; maxBytes?: number }) {
  const script = createScript(redis, 'append', { MAX_BYTES: String(maxBytes) })
  return { append, appendAt }

  async function append(appends: readonly Append[]): Promise<AppendResult[]> {
    return (await appendAt(appends)).map(({ result }) => result)
  }

  /** With the cursor behind the entries. In a cluster, one call for each shard, because a script runs on one server. */
  async function appendAt(appends: readonly Append[]): Promise<Appended[]> {
    if (!redis.isCluster) return appendTogether(appends)
    const results = new Map<Append, Appended>()
    const shards = new Set(appends.map(({ task }) => keys.shardOf(task)))
    await Promise.all(
      Array.from(shards, async shard => {
        const own = appends.filter(({ task }) => keys.shardOf(task) === shard)
        for (const [i, result] of (await appendTogether(own)).entries()) results.set(own[i] as Append, result)
      }),
    )
    return appends.map(one => results.get(one) ?? { result: 'gap' })
  }

  async function appendTogether(appends: readonly Append[]): Promise<Appended[]> {
    const names: string[] = []
    const args: (string | number)[] = []
    for (const { task, epoch, first, last, entries } of appends) {
      names.push(keys.stream(task), keys.state(task))
      args.push(keys.channel(task), epoch, first, last ?? '', entries.length)
      for (const { index, json } of entries) args.push(index ?? '', json)
    }
    const results = (await script.run(names, args)) as (AppendResult | number)[]
    return appends.map(({ epoch }, i) => {
      const result = results[2 * i] as AppendResult
      return result === 'ok' ? { result, cursor: formatCursor(epoch, results[2 * i + 1] as number) } : { result }
    })
  }
}

/** For the server. */
export function createLogAnnouncer({ redis, keys, retentionMs }: { redis: RedisConnection; keys: Keys; retentionMs: number }) {
  const script = createScript(redis, 'announce')
  return {
    ...{ announce, remove, ping },
    tellWorker: (worker: string, turnId: TurnId) => tellWorker(redis, keys, worker, turnId),
    tellAnswered: (worker: string, turnId: TurnId) => tellAnswered(redis, keys, worker, turnId),
  }

  async function announce(announcement: Announcement): Promise<{ result: AnnounceResult; cursor: Cursor }> {
    const { task, epoch, opens = true, whole, first, running, entries } = announcement
    const closed = running === undefined ? '' : running ? '0' : '1'
    const open = !opens ? '0' : whole ? 'whole' : '1'
    const args = entries.flatMap(({ key, event }) => {
      const { index, json } = encodeEvent(event)
      return [key, index ?? '', json]
    })
    const [result, cursor] = (await script.run(
      [keys.stream(task), keys.state(task)],
      [keys.channel(task), epoch ?? '', open, first ?? '', closed, retentionMs, ...args],
    )) as [AnnounceResult, string]
    return { result, cursor: parseCursor(cursor) ?? origin }
  }

  /** Throws when Redis is unavailable. Called before work that needs it. */
  async function ping(): Promise<void> {
    await redis.ping()
  }

  /** Only for a task that was removed, because a removed log no longer has its fence. Subscribers learn that the task is gone. */
  async function remove(task: TaskId): Promise<void> {
    await redis.del(keys.stream(task), keys.state(task))
    await publish(redis, keys.channel(task), removedMessage)
  }
}

/** For readers: state and entries on request. Pushes come by a `createLogSubscriber`. */
export function createLogReader({ redis, keys }: { redis: RedisConnection; keys: Keys }) {
  const script = createScript(redis, 'state')
  return { state, read, hasTurn }

  async function state(task: TaskId): Promise<LogState | null> {
    const known = (await script.run([keys.state(task)], [])) as (string | null)[] | null
    if (!known) return null
    const [epoch, seq, number, stale, whole, previous, begin] = known
    const cursor = parseCursor(seq === '0' ? (previous ?? origin) : `${epoch}-${seq}`) ?? origin
    const first = parseCursor(begin ?? '')
    const flags = { isWhole: whole === '1', isStale: stale === '1' }
    return { cursor, epoch: Number(epoch), number: Number(number), ...flags, ...(first && { begin: first }) }
  }

  /** Whether the log has a turn: it waits, runs or has its end there. Turns that ended long ago are trimmed. */
  async function hasTurn(task: TaskId, turnNumber: number): Promise<boolean> {
    const [current, ...known] = await redis.hmget(keys.state(task), 'turn', `queued:${turnNumber}`, `finished:${turnNumber}`)
    return current === String(turnNumber) || known.some(place => place !== null)
  }

  /** Up to `count` entries from a cursor on, that entry included, and not beyond `to`, if given. */
  async function read(task: TaskId, from: Cursor, count: number, to?: Cursor): Promise<LogEntry[]> {
    return entriesOf(await redis.xrangeBuffer(keys.stream(task), from, to ?? '+', 'COUNT', count))
  }
}

export type LogSubscriber = ReturnType<typeof createLogSubscriber>

/** Receives the pushes of the followed logs. After `onReset`, the caller must read from the logs what it missed. */
export function createLogSubscriber({
  channels,
  keys,
  onPush,
  onRemoved,
  onReset,
}: {
  channels: Channels
  keys: Keys
  onPush: (push: Push) => void
  onRemoved: (task: TaskId) => void
  onReset: () => void
}) {
  channels.onReset(onReset)
  return { follow, unfollow: (task: TaskId) => channels.leave(keys.channel(task)) }

  /** Resolves when every later write will be pushed. */
  async function follow(task: TaskId): Promise<void> {
    await channels.hear(keys.channel(task), { handle: message => take(task, message), isSharded: true })
  }

  function take(task: TaskId, message: Buffer): void {
    const push = parsePush(task, message)
    if (push) onPush(push)
    else if (message.toString() === removedMessage) onRemoved(task)
  }
}

/**
 * The push in a message, or null when the message is not a push.
 *
 * The indexes of the entries are the first entry, whose cursor is 0-0. A version that does not know it skips it as an entry that it already has, and pushes
 * of that version have none.
 */
export function parsePush(task: TaskId, message: Buffer): Push | null {
  const bytes = readByteText(message)
  const chars = charsOf(bytes)
  let end = chars.indexOf('\n')
  const previous = end === -1 ? null : parseCursor(chars.slice(0, end))
  if (previous === null) return null
  let indexes: readonly (number | null)[] = []
  if (chars.startsWith(indexLine, end)) {
    const from = end + indexLine.length
    end = chars.indexOf('\n', from)
    if (end === -1) return null
    indexes = parseIndexes(chars, from, end)
  }
  const entries: LogEntry[] = []
  while (end < chars.length) {
    const middle = chars.indexOf('\n', end + 1)
    const cursor = middle === -1 ? null : parseCursor(chars.slice(end + 1, middle))
    if (cursor === null) return null
    const next = chars.indexOf('\n', middle + 1)
    end = next === -1 ? chars.length : next
    entries.push({ cursor, index: indexes[entries.length], json: cutByteText(bytes, middle + 1, end) })
  }
  return { task, previous, entries }
}

/** An entry that another program wrote, without our field `event`, gets empty JSON: readers count and skip it. */
function entriesOf(rows: [Buffer, Buffer[]][]): LogEntry[] {
  return rows.flatMap(([id, fields]) => {
    const cursor = parseCursor(id.toString('latin1'))
    const text = fieldOf(fields, indexField)?.toString('latin1')
    const [index] = text === undefined ? [] : parseIndexes(text, 0, text.length)
    return cursor ? [{ cursor, index, json: readByteText(fieldOf(fields, eventField) ?? noBytes) }] : []
  })
}

function fieldOf(fields: readonly Buffer[], name: Buffer): Buffer | undefined {
  const at = fields.findIndex((field, i) => i % 2 === 0 && field.equals(name))
  return at === -1 ? undefined : fields[at + 1]
}

/** Numbers and blanks between commas. Without a regular expression, because every delta passes here; empty where another text stands there. */
function parseIndexes(chars: string, from: number, to: number): (number | null)[] {
  const indexes: (number | null)[] = []
  let index: number | null = null
  for (let at = from; at < to; at += 1) {
    const code = chars.charCodeAt(at)
    if (code === comma) {
      indexes.push(index)
      index = null
    } else if (code >= zero && code <= zero + 9) index = (index ?? 0) * 10 + code - zero
    else return []
  }
  indexes.push(index)
  return indexes
}

const [comma, zero] = [44, 48]
const indexLine = `\n${origin}\n`
const indexField = Buffer.from('index')
const eventField = Buffer.from('event')
const noBytes = Buffer.alloc(0)
