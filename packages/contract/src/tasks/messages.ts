/** The messages of a task, those of a running turn included. */
import { messageSchema } from '@rivulet/protocol'
import { z } from 'zod'
import { pageOf, route } from '../route.ts'
import { digits, messageIndexSchema, pageLimit } from '../values.ts'
import { params } from './fields.ts'

export const listMessagesQuery = z.strictObject({
  after: digits.optional(),
  limit: pageLimit,
  turn: digits.optional(),
  /** Whether large values that the server stores as files are put back. */
  inline: z.enum(['true', 'false']).optional(),
})

const reading = { tag: 'tasks', scope: 'tasks:read', token: 'read' } as const

export const listMessages = route('GET /v1/tasks/:id/messages', {
  ...reading,
  params,
  query: listMessagesQuery,
  returns: { 200: pageOf(messageSchema, z.int()) },
  errors: ['task_not_found'],
  doc: 'Lists the messages of a task by index',
  note: 'Including those of a running turn',
})

export const getMessage = route('GET /v1/tasks/:id/messages/:index', {
  ...reading,
  params: params.extend({ index: messageIndexSchema }),
  returns: { 200: z.object({ message: messageSchema }) },
  errors: ['task_not_found', 'not_found'],
  doc: 'Returns one message of a task',
  note: 'Also of a running turn',
})

export type ListMessages = z.output<typeof listMessagesQuery>
