import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import { formFaults, formSchemaFault } from './form-schema.ts'
import type { Json, JsonObject } from './json.ts'

const object = (properties: Record<string, Json>, more: JsonObject = {}): JsonObject => ({ type: 'object', properties, ...more })

describe('a schema that every client can draw', () => {
  test('has strings, numbers, booleans, choices and lists of choices', () => {
    const schema = object(
      {
        note: { type: 'string', title: 'Note', minLength: 1, maxLength: 10, default: 'a' },
        mail: { type: 'string', format: 'email' },
        amount: { type: 'number', minimum: 0 },
        count: { type: 'integer', maximum: 3 },
        sure: { type: 'boolean' },
        size: { type: 'string', enum: ['s', 'm'] },
        tags: { type: 'array', items: { type: 'string', enum: ['a', 'b'] }, minItems: 1 },
      },
      { required: ['note'], additionalProperties: false },
    )
    expect(formSchemaFault(schema)).toBeNull()
  })

  test('is what zod makes of a flat object', () => {
    const schema = z.object({
      note: z.string(),
      when: z.iso.date().optional(),
      size: z.enum(['s', 'm']),
      count: z.int().min(1),
      sure: z.boolean(),
    })
    const { $schema: _, ...json } = z.toJSONSchema(schema) as JsonObject
    const { pattern: __, ...when } = (json.properties as JsonObject).when as JsonObject
    expect(formSchemaFault({ ...json, properties: { ...(json.properties as JsonObject), when } })).toBeNull()
  })

  test.each<[string, Json, string]>([
    ['no object', { type: 'string' }, '/type'],
    ['no schema', 'text', '/type'],
    ['a nested object', object({ a: { type: 'object', properties: {} } }), '/properties/a/type'],
    ['a list of objects', object({ a: { type: 'array', items: { type: 'object' } } }), '/properties/a/items'],
    ['a list of any strings', object({ a: { type: 'array', items: { type: 'string' } } }), '/properties/a/items'],
    ['several types', object({ a: { type: ['string', 'null'] } }), '/properties/a/type'],
    ['a union', object({ a: { anyOf: [] } }), '/properties/a/type'],
    ['a reference', object({ a: { type: 'string', $ref: '#' } }), '/properties/a/$ref'],
    ['a pattern', object({ a: { type: 'string', pattern: '(a+)+$' } }), '/properties/a/pattern'],
    ['an unknown format', object({ a: { type: 'string', format: 'colour' } }), '/properties/a/format'],
    ['an empty choice', object({ a: { type: 'string', enum: [] } }), '/properties/a/enum'],
    ['a required field that it lacks', object({}, { required: ['a'] }), '/required'],
    ['fields of any name', object({}, { additionalProperties: true }), '/additionalProperties'],
    ['51 fields', object(Object.fromEntries(Array.from({ length: 51 }, (_, i) => [`f${i}`, { type: 'string' }]))), '/properties'],
  ])('%s is refused, naming the path', (_, schema, path) => {
    expect(formSchemaFault(schema)?.path).toBe(path)
  })
})

describe('the content of an answer', () => {
  const fields: [string, JsonObject, Json[], Json[]][] = [
    ['a string', { type: 'string', minLength: 1, maxLength: 3 }, ['a', 'abc'], ['', 'abcd', 7, null]],
    ['an address', { type: 'string', format: 'email' }, ['a@b.cd'], ['a@b', 'a b@c.de', '@b.cd']],
    ['an URL', { type: 'string', format: 'uri' }, ['https://a.example/b'], ['a b']],
    ['a date', { type: 'string', format: 'date' }, ['2026-02-28'], ['2026-02-30', '2026-2-3', 'today']],
    ['a time', { type: 'string', format: 'time' }, ['23:59', '08:00:01'], ['24:00']],
    ['a moment', { type: 'string', format: 'date-time' }, ['2026-02-28T10:00:00Z'], ['2026-02-28', '2026-13-01T10:00:00Z']],
    ['a uuid', { type: 'string', format: 'uuid' }, ['0192f0c1-2345-7abc-8def-0123456789ab'], ['0192']],
    ['a choice', { type: 'string', enum: ['s', 'm'] }, ['s'], ['l', 1]],
    ['a number', { type: 'number', minimum: 0, exclusiveMaximum: 10, multipleOf: 0.1 }, [0, 0.3, 9.9], [-1, 10, 0.05, '1']],
    ['an integer', { type: 'integer', exclusiveMinimum: 0, maximum: 3 }, [1, 3], [0, 4, 1.5]],
    ['a boolean', { type: 'boolean' }, [true, false], ['true', 1]],
    [
      'a list',
      { type: 'array', items: { type: 'string', enum: ['a', 'b'] }, minItems: 1, maxItems: 2 },
      [['a'], ['a', 'b']],
      [[], ['c'], ['a', 'a', 'b'], 'a'],
    ],
  ]
  test.each(fields)('%s', (_, field, good, bad) => {
    const schema = object({ f: field })
    expect(formSchemaFault(schema)).toBeNull()
    for (const value of good) expect(formFaults(schema, { f: value })).toEqual([])
    for (const value of bad) expect(formFaults(schema, { f: value })).toMatchObject([{ path: '/f' }])
  })

  test('has the required fields, and no others', () => {
    const schema = object({ a: { type: 'string' }, b: { type: 'string' } }, { required: ['a'] })
    expect(formFaults(schema, { b: 'x', c: 1 }).map(({ path }) => path)).toEqual(['/a', '/c'])
    expect(formFaults(schema, undefined)).toMatchObject([{ path: '/' }])
    expect(formFaults(schema, ['a'])).toMatchObject([{ path: '/' }])
    expect(formFaults(schema, { constructor: 'x' }).map(({ path }) => path)).toEqual(['/a', '/constructor'])
  })
})
