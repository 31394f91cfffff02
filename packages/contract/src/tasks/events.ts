/** Event streams: of a task, of one message, of several tasks. */
import { type Cursor, cursorSyntax, idSchema, parseCursor, type TaskId } from '@rivulet/protocol'
import { z } from 'zod'
import { nothing, route } from '../route.ts'
import { messageIndexSchema } from '../values.ts'
import { params, type StreamFormat, streamFormatSchema } from './fields.ts'

const cursor = z.string().transform((text, context) => {
  const parsed = parseCursor(text)
  if (parsed) return parsed
  context.addIssue({ code: 'custom', message: cursorSyntax })
  return z.NEVER
})

/** By the canonical id: capitals mean the same task, so one that is there in two spellings has two cursors, and is rejected. */
const cursors = z.record(z.uuid(), cursor.nullable()).transform((given, context) => {
  const tasks = new Map<TaskId, Cursor | null>()
  for (const [spelling, place] of Object.entries(given)) {
    const task = idSchema.parse(spelling)
    if (tasks.has(task)) context.addIssue({ code: 'custom', path: [spelling], message: 'The same task twice' })
    tasks.set(task, place)
  }
  if (tasks.size === 0) context.addIssue({ code: 'custom', message: 'Name at least one task' })
  return tasks
})

export const manyEventsBody = z.strictObject({
  /** The cursor of each task, or null for a snapshot of it. */
  tasks: cursors,
  /** Also the children of these tasks, of all levels: those that have not ended, and those that start later. */
  children: z.boolean().default(false),
  /** Keep the stream open when the tasks have ended. */
  follow: z.boolean().default(false),
})

const tag = 'tasks'
const watching = { tag, scope: 'tasks:read', token: 'read', tokenInQuery: true, hasNoHead: true } as const
const after = z.union([z.string(), z.array(z.string())]).optional()
const atEnd = nothing.describe('There is nothing more to come')

/** The formats whose stream is of one turn; the others cover the whole task. */
const turnFormats: readonly (StreamFormat | undefined)[] = ['ai-sdk']

function eventsOf(description: string) {
  return { description, content: { 'text/event-stream': { schema: z.string() } } }
}

const query = z
  .strictObject({
    token: z.string().optional(),
    after,
    from: z.literal('start').optional(),
    follow: z.enum(['true', 'false']).optional(),
    format: streamFormatSchema.optional(),
    turn: z
      .string()
      .regex(/^[1-9]\d{0,8}$/, 'A turn has a number, from 1')
      .optional(),
  })
  .refine(({ format, follow }) => !turnFormats.includes(format) || follow !== 'true', {
    path: ['follow'],
    message: 'A stream of this format ends with its turn',
  })
  .refine(({ format, turn: turnNumber }) => turnFormats.includes(format) || turnNumber === undefined, {
    path: ['turn'],
    message: 'A stream of this format covers the whole task; use turn with format=ai-sdk',
  })

export const watchTask = route('GET /v1/tasks/:id/events', {
  ...watching,
  params,
  query,
  returns: { 200: eventsOf('Its events, as they come'), 204: atEnd },
  errors: ['task_not_found', 'not_found', 'not_acceptable', 'bad_cursor', 'too_many_streams', 'overloaded'],
  doc: 'Streams the events of a task',
})

export const watchMessage = route('GET /v1/tasks/:id/messages/:index/events', {
  ...watching,
  params: params.extend({ index: messageIndexSchema }),
  query: z.strictObject({ token: z.string().optional(), after }),
  returns: { 200: eventsOf('The events of the message, as they come'), 204: atEnd },
  errors: ['task_not_found', 'not_found', 'not_acceptable', 'bad_cursor', 'too_many_streams', 'overloaded'],
  doc: 'Streams the events of one message',
  note: '[The event stream of one message](#one-message); 404 `not_found` if the task has no such message and no turn that could send it',
})

export const watchTasks = route('POST /v1/events', {
  ...{ tag, scope: 'tasks:read', ofAgents: true },
  body: manyEventsBody,
  returns: { 200: eventsOf('The events of all of them, as they come') },
  errors: ['task_not_found', 'too_many_tasks', 'not_acceptable', 'bad_cursor', 'too_many_streams', 'overloaded'],
  doc: 'Streams the events of several tasks',
  note: '[One event stream of several tasks](#several-tasks)',
})

export type ManyEventsInput = { tasks: Record<string, string | null>; children?: boolean; follow?: boolean }
