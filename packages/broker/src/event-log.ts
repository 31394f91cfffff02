/**
 * The log of a task: a Redis stream whose ids are `<epoch>-<seq>`, and a hash that remembers where it stands.
 *
 * Both ends are here. Workers append numbered entries, many logs in one call; the server announces keyed entries and raises the epoch; readers
 * get what is written as it is written, with the cursor before it, and read the rest from the stream. Whoever holds an older epoch is refused
 * by the scripts, and a log that may have lost something is never continued under the same epoch.
 */
import { type Cursor, type Event, origin, parseCursor } from '@rivulet/protocol'
import type { RedisConnection } from './connections.ts'
import type { Keys } from './keys.ts'
import { createScript } from './script.ts'
import { tellWorker } from './worker-channel.ts'

export type AppendAnswer = 'ok' | 'duplicate' | 'gap' | 'missing' | 'fenced' | 'closed' | 'full'
export type AnnounceAnswer = 'ok' | 'missing' | 'fenced' | 'gap'

/** One worker's entries for one log; `first` is the number of the first of them, counted from 1 in each epoch. */
export type Append = { task: string; epoch: number; first: number; entries: readonly EncodedEvent[] }

export type EncodedEvent = { index: number | null; json: string }

export type Announcement = {
  task: string
  /** Raises the log to this epoch, and opens it where there is none. Without it, entries go where the log stands. */
  epoch?: number
  /** A log that is opened now holds everything from the task's beginning. Default false. */
  whole?: boolean
  /** Whether a turn is running afterwards; without it that stays as it is. */
  running?: boolean
  /** Each is written once, by its key. */
  entries: readonly { key: string; event: Event }[]
}

export type LogEntry = { cursor: Cursor; json: string }

/** What a process hears when a log grows: the entries, and the cursor they follow. */
export type Push = { task: string; previous: Cursor; entries: LogEntry[] }

export type LogState = {
  cursor: Cursor
  epoch: number
  /** The number of the worker's last append in this epoch. */
  number: number
  /** Whether the log still begins where the task began. */
  isWhole: boolean
  /** Of another life of Redis: its end may be lost, and it goes on only in a later epoch. */
  isStale: boolean
  /** Before this, the log may lack something: it was begun anew. */
  begin?: Cursor
}

export type LogWriter = ReturnType<typeof createLogWriter>
export type LogAnnouncer = ReturnType<typeof createLogAnnouncer>
export type LogReader = ReturnType<typeof createLogReader>

export function encodeEvent(event: Event): EncodedEvent {
  return { index: 'index' in event ? (event.index ?? null) : null, json: JSON.stringify(event) }
}

/** The worker's end. `maxBytes` is the second wall behind the worker's own count of what a turn says. */
export function createLogWriter({ redis, keys, maxBytes }: { redis: RedisConnection; keys: Keys; maxBytes: number }) {
  const script = createScript(redis, 'append', { MAX_BYTES: String(maxBytes) })
  return { append }

  /** In a cluster, one call for each shard: a script touches one server. */
  async function append(appends: readonly Append[]): Promise<AppendAnswer[]> {
    if (!redis.isCluster) return appendTogether(appends)
    const answers = new Map<Append, AppendAnswer>()
    const shards = new Set(appends.map(({ task }) => keys.shardOf(task)))
    await Promise.all(
      Array.from(shards, async shard => {
        const own = appends.filter(({ task }) => keys.shardOf(task) === shard)
        for (const [i, answer] of (await appendTogether(own)).entries()) answers.set(own[i] as Append, answer)
      }),
    )
    return appends.map(one => answers.get(one) ?? 'gap')
  }

  async function appendTogether(appends: readonly Append[]): Promise<AppendAnswer[]> {
    const names: string[] = []
    const args: (string | number)[] = []
    for (const { task, epoch, first, entries } of appends) {
      names.push(keys.stream(task), keys.state(task))
      args.push(keys.channel(task), epoch, first, entries.length)
      for (const { index, json } of entries) args.push(index ?? '', json)
    }
    return (await script.run(names, args)) as AppendAnswer[]
  }
}

/** The server's end. */
export function createLogAnnouncer({ redis, keys, retentionMs }: { redis: RedisConnection; keys: Keys; retentionMs: number }) {
  const script = createScript(redis, 'announce')
  return { announce, remove, ping, tellWorker: (worker: string, turn: string) => tellWorker(redis, keys, worker, turn) }

  async function announce({ task, epoch, whole, running, entries }: Announcement): Promise<{ answer: AnnounceAnswer; cursor: Cursor }> {
    const closed = running === undefined ? '' : running ? '0' : '1'
    const args = entries.flatMap(({ key, event }) => {
      const { index, json } = encodeEvent(event)
      return [key, index ?? '', json]
    })
    const [answer, cursor] = (await script.run(
      [keys.stream(task), keys.state(task)],
      [keys.channel(task), epoch ?? '', whole ? '1' : '0', closed, retentionMs, Date.now(), ...args],
    )) as [AnnounceAnswer, string]
    return { answer, cursor: parseCursor(cursor) ?? origin }
  }

  /** Throws when Redis is away, before anything is begun that would need it. */
  async function ping(): Promise<void> {
    await redis.ping()
  }

  /** Only for a task that is gone for good: a removed log has forgotten its fence. */
  async function remove(task: string): Promise<void> {
    await redis.del(keys.stream(task), keys.state(task))
  }
}

/** The reader's end: one connection for what is pushed, another for what is asked. */
export function createLogReader({ redis, keys }: { redis: RedisConnection; keys: Keys }) {
  const script = createScript(redis, 'state')
  return { state, read }

  async function state(task: string): Promise<LogState | null> {
    const known = (await script.run([keys.state(task)], [])) as (string | null)[] | null
    if (!known) return null
    const [epoch, seq, number, stale, whole, previous, begin] = known
    const cursor = parseCursor(seq === '0' ? (previous ?? origin) : `${epoch}-${seq}`) ?? origin
    const first = parseCursor(begin ?? '')
    const flags = { isWhole: whole === '1', isStale: stale === '1' }
    return { cursor, epoch: Number(epoch), number: Number(number), ...flags, ...(first && { begin: first }) }
  }

  /** Up to `count` entries from a cursor on, that entry included, and not beyond `to`, if given. */
  async function read(task: string, from: Cursor, count: number, to?: Cursor): Promise<LogEntry[]> {
    return entriesOf(await redis.xrange(keys.stream(task), from, to ?? '+', 'COUNT', count))
  }
}

export type LogSubscriber = ReturnType<typeof createLogSubscriber>

/**
 * Hears what is written to the logs it was asked to follow, on one connection. Pushes can be lost, when the connection breaks or Redis drops a
 * slow subscriber: `onReset` says that from now on everything is heard again, and that what came before has to be read from the logs.
 */
export function createLogSubscriber({
  redis,
  keys,
  onPush,
  onReset,
}: {
  redis: RedisConnection
  keys: Keys
  onPush: (push: Push) => void
  onReset: () => void
}) {
  const followed = new Set<string>()
  let hasConnected = redis.status === 'ready'
  redis.on('message', (channel: string, message: string) => {
    const push = parsePush(keys.taskOfChannel(channel), message)
    if (push) onPush(push)
  })
  redis.on('ready', () => {
    if (hasConnected) void resubscribe()
    hasConnected = true
  })
  return { follow, unfollow }

  /** Resolves when everything that is written from now on will be heard. */
  async function follow(task: string): Promise<void> {
    followed.add(task)
    await redis.subscribe(keys.channel(task))
  }

  async function unfollow(task: string): Promise<void> {
    followed.delete(task)
    await redis.unsubscribe(keys.channel(task))
  }

  async function resubscribe(): Promise<void> {
    try {
      if (followed.size > 0) await redis.subscribe(...Array.from(followed, task => keys.channel(task)))
      onReset()
    } catch {
      // The connection broke again: the next one resubscribes.
    }
  }
}

/** What a push says; null for anything that is none. */
export function parsePush(task: string, message: string): Push | null {
  const lines = message.split('\n')
  const previous = parseCursor(lines[0] ?? '')
  if (previous === null) return null
  const entries: LogEntry[] = []
  for (let i = 1; i + 1 < lines.length; i += 2) {
    const cursor = parseCursor(lines[i] ?? '')
    if (cursor === null) return null
    entries.push({ cursor, json: lines[i + 1] ?? '' })
  }
  return { task, previous, entries }
}

/** Entries that somebody else put there, under an id or with fields that are not ours, have no JSON: readers count and skip them. */
function entriesOf(rows: [string, string[]][]): LogEntry[] {
  return rows.flatMap(([id, fields]) => {
    const cursor = parseCursor(id)
    const at = fields.indexOf('event')
    return cursor ? [{ cursor, json: at % 2 === 0 ? (fields[at + 1] ?? '') : '' }] : []
  })
}
