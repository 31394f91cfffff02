/** For tests of agents: one turn without a platform. */
export type { TestAnswer, TestFile } from './memory-server.ts'
export type { TestStore } from './memory-store.ts'
export { type TestTurn, type TestTurnOptions, testTurn } from './test-turn.ts'
