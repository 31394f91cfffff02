/** A word from the server to one worker process: a turn of yours is over. A hint only; heartbeats and the fence say the same, later. */
import type { RedisConnection } from './connections.ts'
import type { Keys } from './keys.ts'

export async function tellWorker(redis: RedisConnection, keys: Keys, worker: string, turn: string): Promise<void> {
  await redis.publish(keys.workerChannel(worker), turn)
}

/** `redis` is a `subscriber` connection; it stays the caller's. */
export function hearServer(redis: RedisConnection, keys: Keys, worker: string, onOver: (turn: string) => void): void {
  redis.on('message', (_, turn: string) => onOver(turn))
  redis.on('ready', () => void redis.subscribe(keys.workerChannel(worker)).catch(() => {}))
}
