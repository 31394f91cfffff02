/**
 * The log of a task and its fold, between workers, the server and clients. Pure: it runs in Node and in a browser, and imports no other package of Rivulet.
 *
 * Each folder is also an entry of its own, `@rivulet/protocol/events` for example. The calls of the API are in `packages/contract`.
 */
export * from './entities/index.ts'
export * from './errors.ts'
export * from './events/index.ts'
export * from './fold/index.ts'
export * from './limits.ts'
export * from './values/index.ts'
