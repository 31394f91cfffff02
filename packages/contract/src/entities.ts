/** The entities that the OpenAPI document names, so that a generated client has one type of each. */
import { contentSchema, fileSchema, messageSchema, stateSchema, taskSchema, turnSchema, turnWaitSchema } from '@rivulet/protocol'
import { auditEntrySchema } from './access/audit.ts'
import { callerSchema, keySchema } from './access/keys.ts'
import { activitySchema, agentSchema, errorGroupSchema, workerSchema, workerVersionSchema } from './agents.ts'
import { storedValueSchema } from './customers/stored-value.ts'
import { feedEntrySchema } from './feed.ts'
import { agentLimitsSchema } from './limits.ts'
import { scheduleRunSchema, scheduleSchema } from './schedules.ts'
import { stepSchema, taskSummarySchema } from './tasks/tasks.ts'
import { attemptSchema } from './tasks/turns.ts'
import { usageReportSchema } from './usage.ts'
import { deliverySchema, webhookSchema } from './webhooks.ts'

export const entities = {
  Activity: activitySchema,
  Agent: agentSchema,
  AgentLimits: agentLimitsSchema,
  Attempt: attemptSchema,
  AuditEntry: auditEntrySchema,
  Caller: callerSchema,
  Content: contentSchema,
  Delivery: deliverySchema,
  ErrorGroup: errorGroupSchema,
  FeedEntry: feedEntrySchema,
  File: fileSchema,
  Key: keySchema,
  Message: messageSchema,
  Schedule: scheduleSchema,
  ScheduleRun: scheduleRunSchema,
  State: stateSchema,
  StoredValue: storedValueSchema,
  Step: stepSchema,
  Task: taskSchema,
  TaskSummary: taskSummarySchema,
  Turn: turnSchema,
  UsageReport: usageReportSchema,
  Wait: turnWaitSchema,
  Webhook: webhookSchema,
  Worker: workerSchema,
  WorkerVersion: workerVersionSchema,
}
