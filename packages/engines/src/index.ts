/** The public entry of `@rivulet/engines`: Redis and Postgres for development and tests. */
export type { Engine } from './engine.ts'
export { commandOf, parentOf } from './guardian/process-name.ts'
export { keepSecretsKey } from './password.ts'
export { type EngineOptions, startPostgres, startRedis } from './start-engine.ts'
export { createTestDatabases, type TestDatabase, type TestDatabases } from './test-databases.ts'
