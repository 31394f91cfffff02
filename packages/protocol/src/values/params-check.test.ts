/** Params against the schema that an agent has announced, and which schemas are accepted. */
import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import { objectSchemaOf } from './object-schema.ts'
import { checkOf, paramsSchemaSchema } from './params-check.ts'

const params = z.object({
  city: z.string().min(2).max(10),
  days: z.number().int().min(1).max(7).default(3),
  unit: z.enum(['c', 'f']).optional(),
  stops: z
    .array(z.object({ name: z.string(), night: z.boolean().optional() }))
    .max(2)
    .optional(),
  when: z.iso.date().optional(),
  pattern: z.string().optional(),
})

describe('a check', () => {
  const check = checkOf(objectSchemaOf(params))

  test.each([
    [{ city: 'Oslo' }],
    [{ city: 'Oslo', days: 7, unit: 'f', stops: [{ name: 'a' }, { name: 'b', night: true }], when: '2026-01-01', pattern: 'x' }],
    [{ city: 'Oslo', other: 1 }],
  ])('accepts %j', given => {
    expect(check?.(given)).toEqual([])
    expect(params.safeParse(given).success).toBe(true)
  })

  test.each([
    [{}, '/params/city'],
    [null, '/params'],
    ['Oslo', '/params'],
    [{ city: 'O' }, '/params/city'],
    [{ city: 'Oslo', days: 1.5 }, '/params/days'],
    [{ city: 'Oslo', days: 8 }, '/params/days'],
    [{ city: 'Oslo', unit: 'k' }, '/params/unit'],
    [{ city: 'Oslo', stops: [{ name: 'a' }, { night: true }] }, '/params/stops/1/name'],
    [{ city: 'Oslo', when: 'soon' }, '/params/when'],
    [{ city: 'Oslo', pattern: 1 }, '/params/pattern'],
  ])('refuses %j at %s', (given, path) => {
    expect(check?.(given)).toEqual([{ path, reason: expect.any(String) }])
  })

  test.each([
    ['before', (both: z.ZodType, alone: z.ZodType) => z.object({ both, alone })],
    ['after', (both: z.ZodType, alone: z.ZodType) => z.object({ alone, both })],
  ])('of a closed schema refuses fields of an object that stands in an intersection %s it stands alone', (_, shape) => {
    const part = z.object({ a: z.string() })
    const closed = checkOf(objectSchemaOf(shape(part.and(z.object({ b: z.string() })), part), { isClosed: true }))
    expect(closed?.({ both: { a: 'x', b: 'y' }, alone: { a: 'x' } })).toEqual([])
    expect(closed?.({ both: { a: 'x', b: 'y' }, alone: { a: 'x', c: 'z' } })).toEqual([
      { path: '/params/alone/c', reason: expect.any(String) },
    ])
  })

  test('runs no pattern of the schema', () => {
    const evil = checkOf({ type: 'object', properties: { a: { type: 'string', pattern: '^(a+)+$' } } })
    // It would take hours to try.
    expect(evil?.({ a: `${'a'.repeat(40)}!` })).toEqual([])
  })
})

describe('an announced schema', () => {
  test('is that of a zod object', () => {
    const schema = objectSchemaOf(params)
    expect(paramsSchemaSchema.parse(schema)).toEqual(schema)
    expect(() => objectSchemaOf(z.string())).toThrow('must be an object schema')
    expect(() => objectSchemaOf(z.object({ at: z.date() }))).toThrow('cannot be converted')
  })

  test.each([
    ['not an object', { type: 'string' }],
    ['a reference', { type: 'object', properties: { a: { $ref: '#' } } }],
    ['too long', { type: 'object', description: 'x'.repeat(20_000) }],
    ['too many alternatives', { type: 'object', properties: { a: { anyOf: Array.from({ length: 51 }, () => ({ type: 'string' })) } } }],
    ['a keyword that cannot be checked', { type: 'object', if: { type: 'object' }, else: {} }],
    ['a list', []],
  ])('is refused: %s', (_, schema) => {
    expect(paramsSchemaSchema.safeParse(schema).success).toBe(false)
  })
})
