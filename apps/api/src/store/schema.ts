/**
 * The tables, under the names of the protocol. Postgres is the truth: what is accepted is here, what is announced as finished is here.
 * The SQL in `migrations/` is generated from these files by `npm run migrations:generate`; a test fails when the two drift apart.
 */

export { audit, idempotencyKeys, keys, secrets, tokenRevocations } from './schema/access.ts'
export { agents, limits, workers } from './schema/agents.ts'
export { children } from './schema/children.ts'
export { outbox, starts } from './schema/dispatch.ts'
export { deliveries, feed, feedReaders, feedServer, webhooks } from './schema/feed.ts'
export { type FileStoreName, fileChunks, fileSums, files, looseFiles, scheduleFiles, taskFiles } from './schema/files.ts'
export { memorySizes, memoryValues } from './schema/memory.ts'
export { scheduleRuns, schedules } from './schema/schedules.ts'
export { attempts, messages, states, steps, taskSecrets, tasks, turns } from './schema/tasks.ts'
export { usage } from './schema/usage.ts'
export { signals, type WaitRequest, waits } from './schema/waits.ts'
