/**
 * The contract between workers, the server and clients. Pure: it runs in Node and in a browser, and imports no other package of Rivulet.
 *
 * Names are listed one by one, so that adding one to the contract is a decision. A name that no other package needs stays in its room.
 */

// Every error code, and every limit.

export { agentFailed, type ErrorCode, type ErrorDetail, type ErrorRow, errorTable, isErrorCode, RivuletError } from './errors.ts'
export {
  defaultLimits,
  headLimits,
  type Limits,
  limitNames,
  maxAnswerBytes,
  maxDetails,
  maxFileName,
  maxHistoryMessages,
  maxInlineMediaBytes,
  maxInlineValueBytes,
  maxInputs,
  maxJoinedBytes,
  maxMetadataFilters,
  maxMimeType,
  maxModelName,
  maxPageSize,
  maxQueuedInputBytes,
  maxReasoningIndex,
  maxSecretLength,
  maxSecrets,
  maxSignals,
  maxStateBytes,
  maxStepName,
  maxStreamTasks,
  maxTokenSeconds,
  maxUsageRecords,
  maxWaitDays,
  maxWaitMs,
  maxWaitName,
  maxWaits,
  maxWaitsBytes,
  signalHours,
  waitDays,
} from './limits.ts'

// values: JSON that can be streamed and stored.

export { type Backoff, backoffMs } from './values/backoff.ts'
export { type Duration, durationMs } from './values/duration.ts'
export { formFaults, formSchemaFault } from './values/form-schema.ts'
export { findJsonFault, type Json, type JsonObject, toStorableJson, toStorableText } from './values/json.ts'
export { jsonObjectSchema, jsonSchema } from './values/json-schema.ts'
export { isObject, mergePatch } from './values/merge-patch.ts'
export { type SecretValues, withoutSecrets } from './values/secret-text.ts'
export { untilAborted } from './values/until-aborted.ts'

// entities: the objects that the API stores and returns.

export {
  type AgentLimits,
  type AgentLimitsInput,
  agentLimitsBody,
  agentLimitsSchema,
  changeAgentBody,
  concurrencyKeySchema,
} from './entities/agent-limits.ts'
export type { Accepts, Skill } from './entities/agent-skill.ts'
export { type AuditAction, type AuditEntry, auditActionSchema, auditActions, auditEntrySchema } from './entities/audit-entry.ts'
export {
  type Content,
  type ContentOf,
  contentSchema,
  data,
  emptyContent,
  fileContent,
  media,
  reasoning,
  text,
  toolRequest,
  toolResponse,
} from './entities/content.ts'
export {
  type Activity,
  type Agent,
  type Attempt,
  type Author,
  activityBucketMs,
  activitySchema,
  agentSchema,
  attemptSchema,
  authorSchema,
  type Budget,
  budgetSchema,
  type ErrorGroup,
  errorGroupSchema,
  type Failure,
  type Message,
  maxActivityMinutes,
  messageSchema,
  type Speaker,
  type Step,
  stepSchema,
  type Task,
  type TaskSummary,
  type Turn,
  type TurnFailure,
  taskSchema,
  taskSummarySchema,
  turnSchema,
  type Usage,
  type UsageRecord,
  type Worker,
  type WorkerVersion,
  workerSchema,
  workerVersionSchema,
} from './entities/entities.ts'
export { type FeedEntry, type FeedEntryType, feedEntrySchema, feedEntryTypeSchema } from './entities/feed-entry.ts'
export { type File, type FileId, fileIdSchema, fileNameSchema, fileSchema, mimeTypeSchema } from './entities/file.ts'
export { agentNameSchema, idSchema, nameRule, nameSchema, type TaskId, type TurnId, taskIdSchema, turnIdSchema } from './entities/ids.ts'
export { type Caller, callerSchema, type Key, keyIdSchema, keySchema, type Scope, scopeSchema, scopes } from './entities/key.ts'
export { type Schedule, type ScheduleRun, type SkipReason, scheduleRunSchema, scheduleSchema } from './entities/schedule.ts'
export { type State, type StateChange, stateSchema } from './entities/state.ts'
export { closingStatus, hasEnded, outcomeOf } from './entities/status/status.ts'
export {
  type MessageStatus,
  messageStatusSchema,
  type OutcomeStatus,
  outcomeStatusSchema,
  type StopReason,
  stopReasonSchema,
  type TaskStatus,
  type TurnStatus,
  taskStatusSchema,
  turnStatusesBefore,
  turnStatusSchema,
} from './entities/status/status-schema.ts'
export { costOf, type Prices, pricesSchema } from './entities/usage/prices.ts'
export { endOf, sumUsage, tokensOf, usageRecordsOf } from './entities/usage/usage.ts'
export {
  maxUsageDays,
  maxUsageGroups,
  type UsageGrouping,
  type UsageQuery,
  type UsageReport,
  usageGroupings,
  usageQuery,
  usageReportSchema,
} from './entities/usage/usage-report.ts'
export {
  hasOpenQuestion,
  isAnsweredByRequest,
  turnWaitSchema,
  type Wait,
  type WaitAction,
  type WaitAnswer,
  type WaitId,
  type WaitKind,
  type WaitStatus,
  waitIdSchema,
  waitKinds,
} from './entities/wait.ts'
export { type Delivery, deliverySchema, type OnEnd, type Webhook, webhookSchema } from './entities/webhook.ts'

// events: a task's log, and an agent's updates.

export { type Cursor, compareCursors, epochOf, formatCursor, origin, parseCursor, requireCursor, seqOf } from './events/cursor.ts'
export {
  channelOf,
  contentTypeOf,
  type Delta,
  type DeltaOf,
  deltaSchema,
  isTextDelta,
  mergeDeltas,
  type TextDelta,
} from './events/delta.ts'
export {
  type Event,
  type EventOf,
  type EventType,
  eventSchema,
  type MessageEnd,
  type MessageEvent,
  messageEndSchema,
  parseEvent,
  type Snapshot,
  type SnapshotReason,
  type TokenEvent,
  tokenEventSchema,
  type WireEvent,
  wireEventSchema,
} from './events/event.ts'
export { isMessageEvent } from './events/message-event.ts'
export { type Entity, isEntity, readEvent } from './events/shapes.ts'
export { custom, delta, done, full, start, type Update, type UpdateOf, updateSchema } from './events/update.ts'

// fold: events to messages for readers, updates to events for writers.

export { DeltaAccumulator } from './fold/delta-accumulator.ts'
export { digestOf } from './fold/digest.ts'
export { messageEvents } from './fold/message-events.ts'
export { noState } from './fold/state-fold.ts'
export {
  applyEvent,
  applyOrSkip,
  closingEvents,
  emptyState,
  type FoldedTurn,
  messageAt,
  messagesOf,
  nextIndexOf,
  restoreState,
  startedInputs,
  startingWith,
  type TaskState,
} from './fold/task-fold.ts'
export { type ComposedTurn, createTurnComposer, type TurnComposer } from './fold/turn-composer.ts'

// requests: the calls of callers and workers, and their responses.

export { auditPage, type ListAudit, listAuditQuery } from './requests/audit-requests.ts'
export { type FeedPage, type FeedQuery, feedPage, feedQuery } from './requests/feed-requests.ts'
export {
  type AgentSettings,
  type AppendBody,
  type AppendResult,
  type AskBody,
  type AskResult,
  agentSettingsSchema,
  appendBody,
  appendResult,
  askBody,
  askResult,
  type Claim,
  type ClaimResult,
  childBody,
  claimBody,
  claimResult,
  type FinishBody,
  type FinishResult,
  finishBody,
  finishResult,
  type Hello,
  type Hints,
  type Holding,
  heartbeatBody,
  heartbeatResult,
  helloBody,
  helloResult,
  hintsBody,
  hintsResult,
  historyBody,
  historyResult,
  type JoinedInput,
  type NextBody,
  type NextTurn,
  nextBody,
  nextResult,
  type ParkBody,
  type ParkResult,
  parkBody,
  parkResult,
  type ReleaseBody,
  type RememberedStep,
  readFileBody,
  releaseBody,
  releaseResult,
  reopenBody,
  reopenResult,
  type SpawnBody,
  type SpawnedChild,
  type SpawnResult,
  type StepBody,
  type StepMemory,
  type StepResult,
  spawnBody,
  spawnResult,
  stepBody,
  stepMemorySchema,
  stepResult,
  storeFileHeaders,
  type TakeBody,
  takeBody,
  takeResult,
  type UsageBody,
  usageBody,
  usageResult,
  type WantedChild,
  type WantedChildInput,
  type WantedWait,
  waitsBody,
  waitsResult,
} from './requests/internal.ts'
export {
  type CreateKey,
  type CreateKeyInput,
  createKeyBody,
  keyResponse,
  type ListKeys,
  listKeysQuery,
  type NewKey,
  newKeyResponse,
  type RotatedKey,
  type RotateKey,
  type RotateKeyInput,
  rotatedKeyResponse,
  rotateKeyBody,
} from './requests/key-requests.ts'
export { type ManyEventsInput, manyEventsBody } from './requests/many-events.ts'
export {
  type AnswerBody,
  answerBody,
  type CancelScope,
  type ChangeTask,
  type ChangeTaskInput,
  type CreateTask,
  type CreateTaskInput,
  type CreateTokenInput,
  type CreateTurn,
  type CreateTurnInput,
  cancelTaskBody,
  changeTaskBody,
  createTaskBody,
  createTokenBody,
  createTurnBody,
  type ForkTask,
  type ForkTaskInput,
  forkTaskBody,
  type HistoryMessage,
  type IfBusy,
  type ListMessages,
  type ListTasks,
  type ListWaits,
  listMessagesQuery,
  listTasksQuery,
  listWaitsQuery,
  messageIndexSchema,
  putStateBody,
  type RevokeTokensInput,
  revokeTokensQuery,
  type Secrets,
  type SignalBody,
  type StreamFormat,
  signalBody,
  streamFormatSchema,
  type TaskToken,
  type TokenRight,
  taskDefaults,
  tokenResponse,
  tokenRightSchema,
  turnNumberSchema,
  waitAnswered,
  waitSchema,
} from './requests/requests.ts'
export {
  type CreateSchedule,
  type CreateScheduleInput,
  createScheduleBody,
  type ListRuns,
  type ListSchedules,
  listRunsQuery,
  listSchedulesQuery,
  scheduleResponse,
  scheduleRunResponse,
} from './requests/schedule-requests.ts'
export { detailsOf } from './requests/validation-details.ts'
export {
  type ChangedWebhook,
  type ChangeWebhook,
  type ChangeWebhookInput,
  type CreateWebhook,
  type CreateWebhookInput,
  changedWebhookResponse,
  changeWebhookBody,
  createWebhookBody,
  deliveryResponse,
  type ListDeliveries,
  type ListWebhooks,
  listDeliveriesQuery,
  listWebhooksQuery,
  type NewWebhook,
  newWebhookResponse,
  webhookResponse,
} from './requests/webhook-requests.ts'
export {
  type ClaimedTurn,
  claimHeaders,
  type WorkerAppend,
  type WorkerAppended,
  type WorkerUpdate,
  workerAppendBody,
  workerAppendResult,
  workerAskBody,
  workerAskResult,
  workerClaimBody,
  workerClaimResult,
  workerFinishBody,
  workerFinishResult,
  workerHeartbeatBody,
  workerHeartbeatResult,
  workerHelloBody,
  workerHelloResult,
  workerHistoryQuery,
  workerParkBody,
  workerParkResult,
  workerProtocols,
  workerReleaseBody,
  workerSpawnBody,
  workerSpawnResult,
  workerStepBody,
  workerStepResult,
  workerTakeBody,
  workerTakeResult,
  workerUpdateSchema,
  workerUsageBody,
  workerWaitsResult,
} from './requests/worker-requests.ts'
export { objectSchemaOf } from './values/object-schema.ts'
export { checkOf, type ParamsCheck, paramsSchemaSchema } from './values/params-check.ts'
