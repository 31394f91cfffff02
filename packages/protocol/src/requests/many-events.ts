/** The request for the events of several tasks on one stream. */
import { z } from 'zod'
import { idSchema, type TaskId } from '../entities/ids.ts'
import { type Cursor, cursorSyntax, parseCursor } from '../events/cursor.ts'

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

export type ManyEventsInput = { tasks: Record<string, string | null>; children?: boolean; follow?: boolean }
