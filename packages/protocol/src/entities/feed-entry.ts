/** An entry of the feed: one change of a task or a turn, in brief. What it is about is read with the other calls. */
import { z } from 'zod'
import { agentNameSchema, taskIdSchema } from './ids.ts'
import { turnStatusSchema } from './status/status-schema.ts'

export const feedEntryTypes = [
  'task.created',
  'turn.queued',
  'turn.started',
  'turn.waiting',
  'turn.resumed',
  'turn.finished',
  'task.deleted',
] as const
export const feedEntryTypeSchema = z.enum(feedEntryTypes)

export const feedEntrySchema = z.object({
  /** Its place in the feed, as `after` takes it. */
  seq: z.string(),
  type: feedEntryTypeSchema,
  at: z.iso.datetime(),
  task: taskIdSchema,
  agent: agentNameSchema,
  /** The number of the turn. */
  turn: z.int().optional(),
  attempt: z.int().optional(),
  status: turnStatusSchema.optional(),
  error: z.object({ code: z.string() }).optional(),
})

export type FeedEntryType = z.output<typeof feedEntryTypeSchema>
export type FeedEntry = z.output<typeof feedEntrySchema>
