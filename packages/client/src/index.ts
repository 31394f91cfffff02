/** The SDK for callers of agents, in a browser and in Node: typed calls, and streams that lose no event over any number of reconnects. */

export type { Activity, Agent, ErrorGroup, Worker, WorkerVersion } from '@rivulet/contract/agents'
export type { AuditEntry } from '@rivulet/contract/audit'
export type { FeedEntry, FeedEntryType, FeedPage } from '@rivulet/contract/feed'
export type { StreamFormat } from '@rivulet/contract/fields'
export type { Caller, CreateKeyInput, Key, NewKey, RotatedKey, RotateKeyInput } from '@rivulet/contract/keys'
export type { AgentLimits, AgentLimitsInput } from '@rivulet/contract/limits'
export type { CreateScheduleInput, Schedule, ScheduleRun } from '@rivulet/contract/schedules'
export type { AuditAction, Scope } from '@rivulet/contract/scopes'
export type { StoredValue } from '@rivulet/contract/store'
export type { ChangeTaskInput, CreateTaskInput, ForkTaskInput, Step, TaskSummary } from '@rivulet/contract/tasks'
export type { TaskToken } from '@rivulet/contract/tokens'
export type { Attempt, CreateTurnInput, IfBusy } from '@rivulet/contract/turns'
export type { UsageGrouping, UsageReport } from '@rivulet/contract/usage'
export type { ChangedWebhook, ChangeWebhookInput, CreateWebhookInput, Delivery, NewWebhook, Webhook } from '@rivulet/contract/webhooks'
export {
  type Author,
  applyEvent,
  applyOrSkip,
  type Content,
  type ContentOf,
  type Cursor,
  compareCursors,
  type Delta,
  type ErrorCode,
  type ErrorDetail,
  type Event,
  type EventOf,
  emptyState,
  type Failure,
  type File,
  type FoldedTurn,
  hasEnded,
  type Json,
  type JsonObject,
  type Message,
  messagesOf,
  type OutcomeStatus,
  origin,
  parseCursor,
  RivuletError,
  restoreState,
  type SnapshotReason,
  type State,
  type StopReason,
  type Task,
  type TaskState,
  type TaskStatus,
  type Turn,
  type TurnStatus,
  tokensOf,
  type Usage,
  type Wait,
  type WaitAction,
  type WaitAnswer,
  type WaitKind,
  type WaitStatus,
} from '@rivulet/protocol'
export {
  type AuditQuery,
  type ClientOptions,
  type CreateOptions,
  createClient,
  type DeliveryQuery,
  type HandleOptions,
  type KeyCalls,
  type KeyQuery,
  type LimitCalls,
  type RivuletClient,
  type ScheduleCalls,
  type ScheduleQuery,
  type TaskQuery,
  type UsageRequest,
  type WatchManyOptions,
  type WebhookCalls,
  type WebhookQuery,
} from './client.ts'
export type { FeedCalls, FeedFilter, FeedListQuery, FollowOptions } from './feed.ts'
export type { Download, DownloadOptions, FileCalls, FileSource, UploadOptions, UploadProgress } from './files.ts'
export type { TaskTokenSource, TokenSource } from './http/credentials.ts'
export type { Rejection } from './http/rejection.ts'
export type { Page } from './http/responses.ts'
export type { ConnectionStatus } from './stream/connection-status.ts'
export type { FormatChunk } from './stream/format-stream.ts'
export type { ManyEvent } from './stream/many-stream.ts'
export type { MessageStreamEvent } from './stream/message-stream.ts'
export { isLogged, type LoggedEvent, type SnapshotEvent, type TaskEvent } from './stream/task-event.ts'
export type { MessageQuery } from './task/left-out.ts'
export type { RunResult } from './task/run-task.ts'
export type { CancelOptions, ExportLine, TaskDetail, TaskStateCalls } from './task/task-calls.ts'
export type { ChunksOptions, CreatedTask, EventsOptions, SendOptions, TaskHandle, TaskInput, UnstartedTask } from './task/task-handle.ts'
export { type TaskResult, textOf } from './task/task-result.ts'
export type { TaskView, ViewOptions, ViewState } from './task/task-view.ts'
export type { TasksView, TasksViewOptions } from './task/tasks-view.ts'
export { openWaits, type TaskWaitCalls, type WaitCalls, type WaitQuery } from './waits.ts'
