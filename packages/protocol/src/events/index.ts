/** A task's log, its cursors, and an agent's updates. */
export * from './cursor.ts'
export * from './delta.ts'
export * from './event.ts'
export * from './message-event.ts'
export * from './update.ts'
