/** Tells one worker process that a turn of it is over, or that a wait of it was closed. Only a hint: the worker also learns it from its heartbeat. */
import type { TurnId } from '@rivulet/protocol'
import type { Channels } from './channels.ts'
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

type HintHandlers = { onOver: (worker: string, turnId: TurnId) => void; onAnswered: (worker: string, turnId: TurnId) => void }
export type HintSubscriber = ReturnType<typeof createHintSubscriber>

/** Receives the hints for the followed workers. */
export function createHintSubscriber({ channels, keys, onOver, onAnswered }: { channels: Channels; keys: Keys } & HintHandlers) {
  return { follow, unfollow }

  function follow(worker: string): void {
    channels.hear(keys.workerChannel(worker), { handle: message => take(worker, message.toString()), isSharded: false }).catch(() => {})
  }

  function unfollow(worker: string): void {
    channels.leave(keys.workerChannel(worker)).catch(() => {})
  }

  function take(worker: string, message: string): void {
    if (message.startsWith(answered)) onAnswered(worker, message.slice(answered.length))
    else onOver(worker, message)
  }
}
