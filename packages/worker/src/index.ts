/** For people who write agents: declare them, and run them as a worker of the platform. */
export {
  type Content,
  custom,
  type Delta,
  type Duration,
  data,
  delta,
  done,
  type File,
  fileContent,
  full,
  type Json,
  type Message,
  media,
  RivuletError,
  reasoning,
  start,
  text,
  toolRequest,
  toolResponse,
  type Update,
} from '@rivulet/protocol'
export { type AgentDefinition, type AgentHandler, type AgentOptions, type AgentWithParams, defineAgent } from './define-agent.ts'
export type { Isolation } from './isolation.ts'
export type { Logger } from './logger.ts'
export type { FileAbout, FileBytes, ReadFile } from './turn/file-calls.ts'
export type { Stored } from './turn/steps/step-memory.ts'
export type { TakeStep } from './turn/steps/steps.ts'
export type { Turn, TurnRun, TurnRunOptions, TurnState } from './turn/turn.ts'
export type { StoreChange, StorePage, StoreSearch, TurnStore } from './turn/turn-store.ts'
export type { Answer, Ask, AskOptions, WaitForOptions } from './turn/waits/ask.ts'
export type { ChildResult, NamedChild, Spawn, SpawnOptions, SpawnOutcome } from './turn/waits/spawn.ts'
export { createWorker, type Worker, type WorkerOptions } from './worker.ts'
export type { EndedCall, TurnEnd, WorkerObserver } from './worker-observer.ts'
export type { AutoSent } from './writer/auto-send.ts'
export type { MessageHandle } from './writer/message-handle.ts'
