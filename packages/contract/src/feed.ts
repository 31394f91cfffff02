/** The feed of a tenant: the changes of all its tasks. */
import { agentNameSchema, taskIdSchema, turnStatusSchema } from '@rivulet/protocol'
import { z } from 'zod'
import { route } from './route.ts'
import { pageLimit, place } from './values.ts'

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

export const feedQuery = z.strictObject({
  /** The last entry that the caller has. `0-0`: before the oldest entry that is kept. */
  after: place.optional(),
  agent: agentNameSchema.optional(),
  /** Several types are separated by commas. */
  types: z
    .string()
    .transform(list => list.split(','))
    .pipe(z.array(feedEntryTypeSchema))
    .optional(),
  limit: pageLimit,
})

export const feedPage = z.object({ data: z.array(feedEntrySchema), next: z.string() })

export const readFeed = route('GET /v1/feed', {
  tag: 'feed',
  scope: 'tasks:read',
  ofAgents: true,
  hasNoHead: true,
  query: feedQuery,
  returns: { 200: feedPage.describe('A page; with `Accept: text/event-stream` the entries as they are written') },
  errors: ['bad_cursor', 'feed_expired', 'too_many_streams', 'overloaded'],
  doc: 'Lists the changes of tasks, the oldest first, or streams them as they happen',
  note: '[An event stream](#the-feed) if the request accepts one',
})

export type FeedEntryType = z.output<typeof feedEntryTypeSchema>
export type FeedEntry = z.output<typeof feedEntrySchema>

export type FeedQuery = z.output<typeof feedQuery>
export type FeedPage = z.output<typeof feedPage>
