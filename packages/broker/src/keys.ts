/**
 * Names of everything in Redis. They hold ids only, never text of a client. All keys of a task carry the hash tag of its shard, so one script
 * touches one slot of a cluster.
 */
const shardCount = 64

export type Keys = {
  /** Tasks of one shard may be appended to in one script call. */
  shardOf(task: string): number
  stream(task: string): string
  state(task: string): string
  channel(task: string): string
  taskOfChannel(channel: string): string
  /** Where a worker process hears of turns that it has lost. */
  workerChannel(worker: string): string
  queuePrefix: string
}

export function createKeys(prefix = 'rivulet'): Keys {
  return {
    shardOf,
    stream: task => `${prefix}:{${shardOf(task)}}:log:${task}`,
    state: task => `${prefix}:{${shardOf(task)}}:state:${task}`,
    channel: task => `${prefix}:{${shardOf(task)}}:events:${task}`,
    taskOfChannel: channel => channel.slice(channel.lastIndexOf(':') + 1),
    workerChannel: worker => `${prefix}:worker:${worker}`,
    queuePrefix: `{${prefix}:queue}`,
  }
}

/** What decides on which server of a cluster a key is. */
export function tagOf(key: string): string {
  return /\{([^}]+)\}/.exec(key)?.[1] ?? key
}

/** The last digits of a uuid v7 are random. */
function shardOf(task: string): number {
  return Number.parseInt(task.slice(-4), 16) % shardCount
}
