/** The tables that clients check by are those of the schemas. */
import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import { agentLimitsSchema } from '../entities/agent-limits.ts'
import { contentSchema } from '../entities/content.ts'
import { agentSchema, attemptSchema, messageSchema, stepSchema, taskSchema, taskSummarySchema, turnSchema } from '../entities/entities.ts'
import { feedEntrySchema } from '../entities/feed-entry.ts'
import { fileSchema } from '../entities/file.ts'
import { callerSchema, keySchema } from '../entities/key.ts'
import { scheduleSchema } from '../entities/schedule.ts'
import { stateSchema } from '../entities/state.ts'
import { turnWaitSchema } from '../entities/wait.ts'
import { webhookSchema } from '../entities/webhook.ts'
import { tokenResponse } from '../requests/requests.ts'
import { deltaSchema } from './delta.ts'
import { eventSchema, wireEventSchema } from './event.ts'
import { contentShapes, deltaShapes, entityShapes, eventShapes, isEntity, readEvent, wireEventShapes } from './shapes.ts'

type Fields = Record<string, z.ZodType>
const entities = {
  task: taskSchema,
  summary: taskSummarySchema,
  turn: turnSchema,
  message: messageSchema,
  agent: agentSchema,
  file: fileSchema,
  token: tokenResponse,
  feedEntry: feedEntrySchema,
  webhook: webhookSchema,
  limits: agentLimitsSchema,
  schedule: scheduleSchema,
  key: keySchema,
  wait: turnWaitSchema,
  state: stateSchema,
  caller: callerSchema,
  attempt: attemptSchema,
  step: stepSchema,
}

describe('the tables are those of the schemas', () => {
  test.each([
    ['contents', contentSchema, contentShapes],
    ['deltas', deltaSchema, deltaShapes],
    ['events', eventSchema, eventShapes],
    ['events of the wire', wireEventSchema, wireEventShapes],
  ])('of %s', (_, union, shapes) => {
    const options = (union as z.ZodDiscriminatedUnion).options as unknown as { shape: Fields }[]
    const expected = options.map(({ shape: { type, ...fields } }) => [(type as z.ZodLiteral).value, shapeOf(fields)])
    expect(shapes).toEqual(Object.fromEntries(expected))
  })

  test('of entities', () => {
    const { report, ...checked } = entityShapes
    expect(report).toEqual({})
    expect(checked).toEqual(Object.fromEntries(Object.entries(entities).map(([name, { shape }]) => [name, shapeOf(shape)])))
  })
})

test('an unknown type is null, and a known one with a wrong field is malformed, however deep', () => {
  const event = { type: 'message.delta', task: 't', turn: 1, attempt: 1, at: 0, index: 0, offset: 0, delta: { type: 'text', text: 'a' } }
  expect(readEvent(event)).toBe(event)
  expect(readEvent({ ...event, later: 1, delta: { ...event.delta, later: 1 } })).toMatchObject({ later: 1 })
  expect(readEvent({ ...event, type: 'message.sung' })).toBeNull()
  expect(readEvent({ ...event, type: 'constructor' })).toBeNull()
  for (const wrong of [
    { offset: '0' },
    { delta: {} },
    { delta: { type: 'text', text: 1 } },
    { delta: { type: 'sung' } },
    { index: undefined },
  ]) {
    expect(readEvent({ ...event, ...wrong })).toBe('malformed')
  }
  for (const wrong of [null, 7, 'text', [], {}, { type: 7 }]) expect(readEvent(wrong)).toBe('malformed')
})

test('an entity of a page is checked', () => {
  expect(isEntity({ name: 'echo', description: '', workers: 1, queued: 0, running: 0 }, 'agent')).toBe(true)
  expect(isEntity({ name: 'echo' }, 'agent')).toBe(false)
})

function shapeOf(fields: Fields): Record<string, string> {
  return Object.fromEntries(Object.entries(fields).map(([name, field]) => [isOptional(field) ? `${name}?` : name, kindOf(field)]))
}

function isOptional(field: z.ZodType): boolean {
  return field instanceof z.ZodOptional || field instanceof z.ZodDefault
}

function kindOf(field: z.ZodType): string {
  const named = Object.entries({ ...entities, content: contentSchema, delta: deltaSchema }).find(([, schema]) => schema === field)
  if (named) return named[0]
  if (field instanceof z.ZodOptional || field instanceof z.ZodDefault) return kindOf(field.unwrap() as z.ZodType)
  if (field instanceof z.ZodArray) return `${kindOf(field.element as z.ZodType)}[]`
  if (field instanceof z.ZodRecord || field instanceof z.ZodObject) return 'object'
  if (field instanceof z.ZodEnum || field instanceof z.ZodString || field instanceof z.ZodStringFormat) return 'string'
  if (field instanceof z.ZodNumber) return 'number'
  if (field instanceof z.ZodBoolean) return 'boolean'
  return 'json'
}
