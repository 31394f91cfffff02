import { detailsOf, maxMetadataFilters } from '@rivulet/protocol'
import { describe, expect, test } from 'vitest'
import type { z } from 'zod'
import { listMessagesQuery } from './messages.ts'
import { cancelTaskBody, createTaskBody, listTasksQuery } from './tasks.ts'
import { createTurnBody } from './turns.ts'

/** The paths of all faults; empty when the value is valid. */
function faults(schema: z.ZodType, value: unknown): string[] {
  const parsed = schema.safeParse(value)
  return parsed.success ? [] : detailsOf(parsed.error).map(({ path }) => path)
}

describe('a new task', () => {
  test('only the agent is required; the other fields have defaults', () => {
    expect(createTaskBody.parse({ agent: 'writer' })).toEqual({
      start: true,
      agent: 'writer',
      priority: 0,
      delayMs: 0,
    })
  })

  test('a string is plain text', () => {
    expect(createTaskBody.parse({ agent: 'writer', input: 'hello' }).input).toEqual({ type: 'text', text: 'hello', format: 'plain' })
    expect(createTurnBody.parse({ input: '' }).input).toEqual({ type: 'text', text: '', format: 'plain' })
  })

  test.each([
    { type: 'text', text: 'a', format: 'markdown' },
    { type: 'reasoning', summary: ['a'], content: [] },
    { type: 'data', data: null },
    { type: 'tool_request', callId: '1', name: 'search', arguments: {} },
    { type: 'tool_response', callId: '1', name: 'search', content: [1], isError: true },
    { type: 'media', mimeType: 'image/png', data: 'AQ==' },
    { type: 'media', mimeType: 'image/png', url: 'https://example.org/a.png' },
  ])('content of type $type is accepted unchanged', input => {
    expect(createTaskBody.parse({ agent: 'writer', input }).input).toEqual(input)
  })

  test('an unknown field is rejected with its path, at any depth', () => {
    expect(faults(createTaskBody, { agent: 'writer', prioritty: 1 })).toEqual(['/prioritty'])
    expect(faults(createTaskBody, { agent: 'writer', input: { type: 'text', text: 'a', lang: 'en' } })).toEqual(['/input/lang'])
    expect(faults(createTurnBody, { agent: 'writer' })).toEqual(['/agent'])
    expect(faults(cancelTaskBody, { because: 'x' })).toEqual(['/because'])
    expect(faults(createTaskBody, JSON.parse('{"agent":"writer","__proto__":{"priority":1}}'))).toEqual(['/__proto__'])
  })

  test('raw JSON text is not allowed in inputs', () => {
    expect(faults(createTaskBody, { agent: 'writer', input: { type: 'data', data: 1, raw: '1' } })).toEqual(['/input/raw'])
  })

  test('no value is coerced', () => {
    const wrong = { agent: 'writer', priority: '5', delayMs: null, timeoutMs: true, maxAttempts: 1.5, name: 7, metadata: [], input: 5 }
    expect(faults(createTaskBody, wrong).sort()).toEqual(
      ['/input', '/metadata', '/name', '/priority', '/delayMs', '/timeoutMs', '/maxAttempts'].sort(),
    )
  })

  test('one error lists every fault, including those inside the input', () => {
    const wrong = { agent: 'No Spaces', input: { type: 'text', text: 5, format: 'html', extra: 1 }, maxAttempts: 0, nope: 1 }
    expect(faults(createTaskBody, wrong).sort()).toEqual(
      ['/agent', '/input/extra', '/input/format', '/input/text', '/maxAttempts', '/nope'].sort(),
    )
  })

  test('an input of an unknown type is rejected with the path of its type', () => {
    expect(faults(createTaskBody, { agent: 'writer', input: { type: 'poem' } })).toEqual(['/input/type'])
  })

  test('media has exactly one source', () => {
    const both = { type: 'media', mimeType: 'image/png', data: '', url: 'https://example.org' }
    expect(faults(createTaskBody, { agent: 'writer', input: both })).toEqual(['/input'])
    expect(faults(createTaskBody, { agent: 'writer', input: { type: 'media', mimeType: 'image/png' } })).toEqual(['/input'])
  })

  test.each([{}, null, [], 'writer', { agent: '' }, { agent: 'a'.repeat(65) }, { agent: 'a/b' }])('%j is not a valid task', value => {
    expect(faults(createTaskBody, value)).not.toEqual([])
  })
})

describe('a new turn', () => {
  test('queues behind the other turns by default', () => {
    expect(createTurnBody.parse({})).toEqual({ ifBusy: 'queue' })
    expect(faults(createTurnBody, { ifBusy: 'wait' })).toEqual(['/ifBusy'])
  })
})

describe('listing', () => {
  test('numbers must be digits within their limits', () => {
    expect(listTasksQuery.parse({ limit: '5' }).limit).toBe(5)
    expect(listTasksQuery.parse({}).limit).toBe(100)
    expect(listMessagesQuery.parse({ after: '12', turn: '1' })).toEqual({ after: 12, turn: 1, limit: 100 })
    for (const limit of ['0', '101', '-1', '1.5', '1e2', ' 5', '', '٥', ['5', '6'], 5]) {
      expect(faults(listTasksQuery, { limit })).toEqual(['/limit'])
    }
  })

  test('tasks can be filtered by any metadata key; other unknown names are rejected', () => {
    expect(listTasksQuery.parse({ 'metadata.user': 'ann' })).toMatchObject({ 'metadata.user': 'ann' })
    expect(faults(listTasksQuery, { limt: '5', 'metadata.': 'x', toString: 'x' }).sort()).toEqual(
      ['/limt', '/metadata.', '/toString'].sort(),
    )
    expect(faults(listMessagesQuery, { status: 'running' })).toEqual(['/status'])
  })

  test('at most maxMetadataFilters metadata filters are accepted', () => {
    const filters = (count: number) => Object.fromEntries(Array.from({ length: count }, (_, i) => [`metadata.k${i}`, 'x']))
    expect(faults(listTasksQuery, filters(maxMetadataFilters))).toEqual([])
    expect(faults(listTasksQuery, filters(maxMetadataFilters + 1))).toEqual([''])
  })
})
