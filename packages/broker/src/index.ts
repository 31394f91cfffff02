/** Redis for writers and readers alike: the log of events and the queue of turns. */
export { type ByteText, charsOf, decodeByteText, encodeByteText } from './byte-text.ts'
export { type Channels, createChannels } from './channels.ts'
export { connectRedis, type RedisConnection, whenReady } from './connections.ts'
export {
  type Append,
  type Appended,
  type AppendResult,
  createLogAnnouncer,
  createLogReader,
  createLogSubscriber,
  createLogWriter,
  type EncodedEvent,
  encodeEvent,
  type LogAnnouncer,
  type LogEntry,
  type LogReader,
  type LogState,
  type LogSubscriber,
  type LogWriter,
  messageIndexOf,
  type Push,
  parsePush,
  type TurnLogReader,
} from './event-log.ts'
export { createKeys, type Keys } from './keys.ts'
export { createProcessChannel, type ProcessChannel } from './process-channel.ts'
export { type RedisMemory, readRedisMemory, requireFitRedis, whyPolicyIsUnfit } from './redis-fitness.ts'
export {
  createTurnConsumer,
  createTurnQueue,
  type Dispatch,
  type DispatchName,
  type JobEnd,
  type TurnConsumer,
  type TurnQueue,
} from './turn-queue.ts'
export { createHintSubscriber, type HintSubscriber } from './worker-channel.ts'
