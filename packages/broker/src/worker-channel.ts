/** Tells one worker process that a turn of it is over, or that a wait of it was closed. Only a hint: the worker also learns it from its heartbeat. */
import type { TurnId } from '@rivulet/protocol'
import type { RedisConnection } from './connections.ts'
import type { Keys } from './keys.ts'

export async function tellWorker(redis: RedisConnection, keys: Keys, worker: string, turnId: TurnId): Promise<void> {
  await redis.publish(keys.workerChannel(worker), turnId)
}

export async function tellAnswered(redis: RedisConnection, keys: Keys, worker: string, turnId: TurnId): Promise<void> {
  await redis.publish(keys.workerChannel(worker), answered + turnId)
}

/** Before the id of a turn of which a wait was closed. A message without it means that the turn is over. */
const answered = 'answered '

export type HintHandlers = { onOver: (worker: string, turnId: TurnId) => void; onAnswered: (worker: string, turnId: TurnId) => void }
export type HintSubscriber = ReturnType<typeof createHintSubscriber>

/** Receives the hints for the followed workers. `redis` is a `subscriber` connection, which may have other channels too. The caller closes it. */
export function createHintSubscriber({ redis, keys, onOver, onAnswered }: { redis: RedisConnection; keys: Keys } & HintHandlers) {
  const followed = new Set<string>()
  redis.on('message', (channel: string, message: string) => {
    const worker = keys.workerOfChannel(channel)
    if (worker === null) return
    if (message.startsWith(answered)) onAnswered(worker, message.slice(answered.length))
    else onOver(worker, message)
  })
  redis.on('ready', () => followed.size > 0 && subscribe([...followed]))
  return { follow, unfollow }

  function follow(worker: string): void {
    followed.add(worker)
    if (redis.status === 'ready') subscribe([worker])
  }

  function unfollow(worker: string): void {
    followed.delete(worker)
    redis.unsubscribe(keys.workerChannel(worker)).catch(() => {})
  }

  function subscribe(workers: readonly string[]): void {
    redis.subscribe(...workers.map(worker => keys.workerChannel(worker))).catch(() => {})
  }
}
