/** Tells one worker process that a turn of it is over. Only a hint: the worker also learns it later, from its heartbeat and the fence. */
import type { TurnId } from '@rivulet/protocol'
import type { RedisConnection } from './connections.ts'
import type { Keys } from './keys.ts'

export async function tellWorker(redis: RedisConnection, keys: Keys, worker: string, turnId: TurnId): Promise<void> {
  await redis.publish(keys.workerChannel(worker), turnId)
}

/** `redis` is a `subscriber` connection. The caller closes it. */
export function hearServer(redis: RedisConnection, keys: Keys, worker: string, onOver: (turnId: TurnId) => void): void {
  redis.on('message', (_, turnId: TurnId) => onOver(turnId))
  redis.on('ready', () => void redis.subscribe(keys.workerChannel(worker)).catch(() => {}))
}
