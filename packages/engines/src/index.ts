export { type Engine, type EngineOptions, startPostgres, startRedis } from './engine.ts'
export { createTestDatabases, type TestDatabase, type TestDatabases } from './test-databases.ts'
