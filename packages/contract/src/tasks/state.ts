/** The state of a task. */
import { jsonSchema, stateSchema } from '@rivulet/protocol'
import { z } from 'zod'
import { route } from '../route.ts'
import { params } from './fields.ts'

/** The value that takes the place of the task's state. */
export const putStateBody = z.strictObject({ value: jsonSchema })

const tag = 'tasks'

export const getState = route('GET /v1/tasks/:id/state', {
  ...{ tag, scope: 'tasks:read', token: 'read' },
  params,
  returns: { 200: stateSchema },
  errors: ['task_not_found'],
  doc: 'Returns the state of a task, with an ETag',
  note: '[What a state is](#the-state-of-a-task)',
})

export const putState = route('PUT /v1/tasks/:id/state', {
  ...{ tag, scope: 'tasks:write', ofAgents: true },
  echoes: 200,
  params,
  headers: z.looseObject({ 'if-match': z.string().optional() }),
  body: putStateBody,
  returns: { 200: stateSchema },
  audited: 'state.set',
  errors: ['task_not_found', 'task_busy', 'precondition_failed', 'state_too_large', 'precondition_required'],
  doc: 'Replaces the state of a task between two turns',
  note: 'With an `ETag`',
})
