/** The SDK for callers of agents, in a browser and in Node: typed calls, and streams that lose no event over any number of reconnects. */
export {
  type Activity,
  type Agent,
  type AgentLimits,
  type AgentLimitsInput,
  type Attempt,
  type AuditAction,
  type AuditEntry,
  type Author,
  applyEvent,
  applyOrSkip,
  type Caller,
  type ChangedWebhook,
  type ChangeTaskInput,
  type ChangeWebhookInput,
  type Content,
  type ContentOf,
  type CreateKeyInput,
  type CreateScheduleInput,
  type CreateTaskInput,
  type CreateTurnInput,
  type CreateWebhookInput,
  type Cursor,
  compareCursors,
  type Delivery,
  type Delta,
  type ErrorCode,
  type ErrorDetail,
  type ErrorGroup,
  type Event,
  type EventOf,
  emptyState,
  type Failure,
  type FeedEntry,
  type FeedEntryType,
  type FeedPage,
  type File,
  type FoldedTurn,
  type ForkTaskInput,
  hasEnded,
  type IfBusy,
  type Json,
  type JsonObject,
  type Key,
  type Message,
  messagesOf,
  type NewKey,
  type NewWebhook,
  type OutcomeStatus,
  origin,
  parseCursor,
  RivuletError,
  type RotatedKey,
  type RotateKeyInput,
  restoreState,
  type Schedule,
  type ScheduleRun,
  type Scope,
  type SnapshotReason,
  type State,
  type Step,
  type StopReason,
  type StreamFormat,
  type Task,
  type TaskState,
  type TaskStatus,
  type TaskSummary,
  type TaskToken,
  type Turn,
  type TurnStatus,
  tokensOf,
  type Usage,
  type UsageGrouping,
  type UsageReport,
  type Wait,
  type WaitAction,
  type WaitAnswer,
  type WaitKind,
  type WaitStatus,
  type Webhook,
  type Worker,
  type WorkerVersion,
} from '@rivulet/protocol'
export {
  type AuditQuery,
  type ClientOptions,
  type CreateOptions,
  createClient,
  type HandleOptions,
  type RivuletClient,
  type TaskQuery,
  type UsageRequest,
  type WatchManyOptions,
} from './client.ts'
export type { FeedCalls, FeedFilter, FeedListQuery, FollowOptions } from './feed.ts'
export type { Download, DownloadOptions, FileCalls, FileSource, UploadOptions, UploadProgress } from './files.ts'
export type { TaskTokenSource, TokenSource } from './http/credentials.ts'
export type { Rejection } from './http/rejection.ts'
export type { MessageQuery, Page } from './http/responses.ts'
export type { KeyCalls, KeyQuery } from './keys.ts'
export type { LimitCalls } from './limits.ts'
export type { ScheduleCalls, ScheduleQuery } from './schedules.ts'
export type { ConnectionStatus } from './stream/connection-status.ts'
export type { FormatChunk } from './stream/format-stream.ts'
export type { ManyEvent } from './stream/many-stream.ts'
export type { MessageStreamEvent } from './stream/message-stream.ts'
export { isLogged, type LoggedEvent, type SnapshotEvent, type TaskEvent } from './stream/task-event.ts'
export type { RunResult } from './task/run-task.ts'
export type { CancelOptions, ExportLine, TaskDetail } from './task/task-calls.ts'
export type { ChunksOptions, CreatedTask, EventsOptions, SendOptions, TaskHandle, TaskInput, UnstartedTask } from './task/task-handle.ts'
export { type TaskResult, textOf } from './task/task-result.ts'
export type { TaskStateCalls } from './task/task-state-calls.ts'
export type { TaskView, ViewOptions, ViewState } from './task/task-view.ts'
export type { TasksView, TasksViewOptions } from './task/tasks-view.ts'
export { openWaits, type TaskWaitCalls, type WaitCalls, type WaitQuery } from './waits.ts'
export type { DeliveryQuery, WebhookCalls, WebhookQuery } from './webhooks.ts'
