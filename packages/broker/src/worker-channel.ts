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

export type ServerHints = { onOver: (turnId: TurnId) => void; onAnswered: (turnId: TurnId) => void }

/** `redis` is a `subscriber` connection. The caller closes it. */
export function hearServer(redis: RedisConnection, keys: Keys, worker: string, { onOver, onAnswered }: ServerHints): void {
  redis.on('message', (_, message: string) => {
    if (message.startsWith(answered)) onAnswered(message.slice(answered.length))
    else onOver(message)
  })
  redis.on('ready', () => void redis.subscribe(keys.workerChannel(worker)).catch(() => {}))
}
