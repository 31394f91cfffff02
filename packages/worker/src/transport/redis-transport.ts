/** The transport of a worker with Redis: a consumer for each agent's queue, the scripts of the log, and the channel of this worker. */
import {
  connectRedis,
  createChannels,
  createHintSubscriber,
  createKeys,
  createLogWriter,
  createTurnConsumer,
  requireFitRedis,
  type TurnConsumer,
} from '@rivulet/broker'
import type { Logger } from '../logger.ts'
import type { Transport, TransportEvents, Wanted } from './transport.ts'

type RedisTransportOptions = { worker: string; redisUrl: string; redisPrefix: string | undefined; log: Logger }

export function createRedisTransport(options: RedisTransportOptions, { onOver, onAnswered, onReconnect }: TransportEvents): Transport {
  const { worker, redisUrl: url, redisPrefix, log } = options
  const onError = (error: Error) => log.debug({ err: error }, 'Redis closed the connection; reconnecting')
  const keys = createKeys(redisPrefix)
  const redis = connectRedis('command', { url, onError })
  const blocking = connectRedis('blocking', { url, onError })
  const pushed = connectRedis('subscriber', { url, onError })
  const { append } = createLogWriter({ redis, keys })
  createHintSubscriber({
    ...{ channels: createChannels(pushed), keys },
    onOver: (_, turnId) => onOver(turnId),
    onAnswered: (_, turnId) => onAnswered(turnId),
  }).follow(worker)
  redis.on('ready', onReconnect)
  return { append, ready: signal => requireFitRedis(redis, signal), take, close }

  function take(...[{ agents, queues: first }, room, run]: Parameters<Transport['take']>): ReturnType<Transport['take']> {
    let queues = first
    const consumers = new Map(agents.map(agent => [agent, consume(agent)]))
    /** Those that take nothing more, and whose turns have not ended. */
    const closing = new Set<Promise<void>>()
    let isClosing = false
    return {
      // A queue fetches no more than this process has room for; a fetch that was under way before may still bring a turn, which goes back.
      resize: () => {
        for (const [agent, consumer] of consumers) consumer.setConcurrency(room(agent).most)
      },
      follow: now => {
        if (isClosing) return
        const moved = agents.filter(agent => queueOf(agent, now) !== queueOf(agent, queues))
        queues = now
        for (const agent of moved) {
          leave(consumers.get(agent))
          consumers.set(agent, consume(agent))
          log.info({ agent, queue: queueOf(agent, queues) }, 'the agent has another queue')
        }
      },
      close: async () => {
        isClosing = true
        for (const consumer of consumers.values()) leave(consumer)
        await Promise.all(closing)
      },
    }

    function consume(agent: string): TurnConsumer {
      const own = { queue: queueOf(agent, queues), redis: blocking, keys, concurrency: room(agent).most, onError }
      return createTurnConsumer({ ...own, run: turnId => run(agent, turnId) })
    }

    function leave(consumer: TurnConsumer | undefined): void {
      const closed = Promise.resolve(consumer?.close()).catch(onError)
      closing.add(closed)
      void closed.then(() => closing.delete(closed))
    }
  }

  function close(): void {
    for (const connection of [redis, blocking, pushed]) connection.disconnect()
  }
}

function queueOf(agent: string, queues: Wanted['queues']): string {
  return queues[agent] ?? agent
}
