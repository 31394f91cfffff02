/** A log to write to and to listen to, on the run's Redis or on a server of its own. Everything is closed when the test ends. */
import { randomUUID } from 'node:crypto'
import {
  type Append,
  createKeys,
  createLogAnnouncer,
  createLogReader,
  createLogWriter,
  encodeEvent,
  type Keys,
  type Push,
  parsePush,
} from '@rivulet/broker'
import type { Event, EventOf } from '@rivulet/protocol'
import { Redis } from 'ioredis'
import { inject, onTestFinished } from 'vitest'
import { keyPrefix } from '../engines/database.ts'
import { until } from '../until.ts'

type LogOptions = { url?: string; keys?: Keys; maxBytes?: number; retentionMs?: number }

/** `keys` of another call: the same logs, seen by another process. */
export function openLogs({
  url = inject('redisUrl'),
  keys = createKeys(keyPrefix().replace(/:$/, '')),
  maxBytes = 1_000_000,
  retentionMs = 60_000,
}: LogOptions = {}) {
  const redis = connect()
  return {
    keys,
    redis,
    connect,
    writer: createLogWriter({ redis, keys, maxBytes }),
    announcer: createLogAnnouncer({ redis, keys, retentionMs }),
    reader: createLogReader({ redis, keys }),
    listen,
    ids,
  }

  /** Waits for a server that is being restarted, and sends again what was not answered. */
  function connect(): Redis {
    const client = new Redis(url, { maxRetriesPerRequest: null, retryStrategy: () => 20 })
    client.on('error', () => {})
    onTestFinished(() => client.disconnect())
    return client
  }

  /** What is pushed for a task from now on. */
  async function listen(task: string): Promise<{ pushes: Push[]; heard(count: number): Promise<Push[]> }> {
    const subscriber = connect()
    const pushes: Push[] = []
    subscriber.on('messageBuffer', (_, message: Buffer) => {
      const push = parsePush(task, message)
      if (push) pushes.push(push)
    })
    await subscriber.subscribe(keys.channel(task))
    return { pushes, heard: count => until(`${count} pushes are heard`, () => pushes.length >= count && pushes) }
  }

  async function ids(task: string): Promise<string[]> {
    return (await redis.xrange(keys.stream(task), '-', '+')).map(([id]) => id)
  }
}

export const newTask = () => randomUUID()

export function queued(task: string, turnNumber = 1): { key: string; event: EventOf<'turn.queued'> } {
  return { key: `queued:${turnNumber}`, event: { type: 'turn.queued', task, turn: turnNumber, attempt: 0, at: 1 } }
}

export function started(task: string, epoch: number, turnNumber = 1): { key: string; event: EventOf<'turn.started'> } {
  return { key: `started:${epoch}`, event: { type: 'turn.started', task, turn: turnNumber, attempt: 1, at: 1, firstIndex: 0 } }
}

export function finished(task: string, turnNumber = 1): { key: string; event: EventOf<'turn.finished'> } {
  return {
    key: `finished:${turnNumber}`,
    event: { type: 'turn.finished', task, turn: turnNumber, attempt: 1, at: 1, status: 'completed', stopReason: 'stop' },
  }
}

export function note(task: string, data: string | number = 0): Event {
  return { type: 'custom', task, turn: 1, attempt: 1, at: 1, name: 'note', data }
}

/** Notes under consecutive numbers: `first`, `first + 1` … */
export function notes(task: string, epoch: number, first: number, ...data: (string | number)[]): Append {
  return { task, epoch, first, entries: data.map(value => encodeEvent(note(task, value))) }
}
