/** Events to messages for readers, updates to events for writers. */
export * from './delta-accumulator.ts'
export * from './delta-split.ts'
export * from './digest.ts'
export * from './message-events.ts'
export * from './state-fold.ts'
export * from './task-fold.ts'
export * from './turn-composer.ts'
