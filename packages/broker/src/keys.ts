/**
 * The names of all Redis keys and channels. They contain ids and the names of workers, never text from a client. All keys of a task have the hash tag of its
 * shard, so that one script call uses one slot of a cluster.
 */
import type { TaskId } from '@rivulet/protocol'

const shardCount = 64

export type Keys = {
  /** One script call may append to all tasks of one shard. */
  shardOf(task: TaskId): number
  stream(task: TaskId): string
  state(task: TaskId): string
  channel(task: TaskId): string
  /** Of all API processes. */
  processChannel: string
  /** The channel on which a worker process receives the ids of turns that it has lost. */
  workerChannel(worker: string): string
  queuePrefix: string
}

export function createKeys(prefix = 'rivulet'): Keys {
  return {
    shardOf,
    stream: task => `${prefix}:{${shardOf(task)}}:log:${task}`,
    state: task => `${prefix}:{${shardOf(task)}}:state:${task}`,
    channel: task => `${prefix}:{${shardOf(task)}}:events:${task}`,
    processChannel: `${prefix}:processes`,
    workerChannel: worker => `${prefix}:worker:${worker}`,
    queuePrefix: `{${prefix}:queue}`,
  }
}

/** The part of a key that decides which server of a cluster has it. */
export function tagOf(key: string): string {
  return /\{([^}]+)\}/.exec(key)?.[1] ?? key
}

/** The last digits of a uuid v7 are random. */
function shardOf(task: TaskId): number {
  return Number.parseInt(task.slice(-4), 16) % shardCount
}
