/** The transport of a worker with Redis: a consumer for each agent's queue, the scripts of the log, and the channel of this worker. */
import {
  connectRedis,
  createChannels,
  createHintSubscriber,
  createKeys,
  createLogWriter,
  createTurnConsumer,
  requireFitRedis,
} from '@rivulet/broker'
import type { Logger } from '../logger.ts'
import type { Transport, TransportEvents } from './transport.ts'

export type RedisTransportOptions = { worker: string; redisUrl: string; redisPrefix: string | undefined; log: Logger }

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

  function take(...[{ agents, queues }, room, run]: Parameters<Transport['take']>): ReturnType<Transport['take']> {
    const consumers = agents.map(agent => {
      const own = { queue: queues[agent] ?? agent, redis: blocking, keys, concurrency: room(agent).most, onError }
      return { agent, consumer: createTurnConsumer({ ...own, run: turnId => run(agent, turnId) }) }
    })
    return {
      // A queue fetches no more than this process has room for; a fetch that was under way before may still bring a turn, which goes back.
      resize: () => {
        for (const { agent, consumer } of consumers) consumer.setConcurrency(room(agent).most)
      },
      close: async () => {
        await Promise.all(consumers.map(({ consumer }) => consumer.close()))
      },
    }
  }

  function close(): void {
    for (const connection of [redis, blocking, pushed]) connection.disconnect()
  }
}
