import { describe, expect, test } from 'vitest'
import { canDraw, contentOf, draftOf, editedFrom, fieldsOf, typedFrom, undrawnIn } from './form-fields.ts'

const schema = {
  type: 'object',
  properties: {
    number: { type: 'string', maxLength: 20, description: 'Of the order' },
    note: { type: 'string', title: 'A note' },
    mail: { type: 'string', format: 'email' },
    at: { type: 'string', format: 'date-time' },
    amount: { type: 'number', default: 4.5 },
    times: { type: 'integer' },
    isUrgent: { type: 'boolean' },
    reason: { type: 'string', enum: ['late', 'other'] },
    colors: { type: 'array', items: { type: 'string', enum: ['red', 'blue'] } },
  },
  required: ['number', 'times', 'colors'],
}

describe('the fields of a form', () => {
  const fields = fieldsOf(schema)

  test('are drawn by type and format', () => {
    expect(fields).toMatchObject([
      { name: 'number', label: 'number', note: 'Of the order', isRequired: true, kind: 'text', type: 'text', isLong: false },
      { label: 'A note', isRequired: false, kind: 'text', isLong: true },
      { kind: 'text', type: 'email', isLong: false },
      { kind: 'text', type: 'datetime-local' },
      { kind: 'number', step: 'any' },
      { kind: 'number', step: '1' },
      { kind: 'boolean' },
      { kind: 'choice', options: ['late', 'other'] },
      { kind: 'choices', options: ['red', 'blue'] },
    ])
  })

  test('begin with the defaults of the schema', () => {
    expect(draftOf(schema)).toEqual({ amount: '4.5' })
  })

  test('show a moment with its seconds, and read it back as the same moment', () => {
    const at = '2026-11-19T10:00:37.250Z'
    const moments = { type: 'object', properties: { at: { type: 'string', format: 'date-time', default: at } } }
    expect(String(draftOf(moments).at)).toMatch(/^2026-11-(18|19|20)T\d\d:\d0:37\.250$/)
    expect(contentOf(fieldsOf(moments), draftOf(moments))).toEqual({ at })
    expect(String(typedFrom(fieldsOf(moments), { at: '2026-11-19T10:00:00Z' }).at)).toMatch(/T\d\d:\d0$/)
  })

  test('can be drawn where all of a schema is flat; the rest is edited as JSON', () => {
    expect(canDraw(schema)).toBe(true)
    for (const properties of [{}, { a: { type: 'object' } }, { a: { anyOf: [] } }, { a: { type: 'number', enum: [1] } }])
      expect(canDraw({ type: 'object', properties })).toBe(false)
    expect(canDraw({ ...schema, additionalProperties: { type: 'string' } })).toBe(false)
    expect(canDraw(undefined)).toBe(false)
  })

  test('become content of the schema’s types, without the optional ones that are empty', () => {
    expect(contentOf(fields, draftOf(schema))).toEqual({ number: '', amount: 4.5, colors: [] })
    const draft = {
      number: '7',
      note: '',
      mail: 'a@b.example',
      amount: '1e2',
      times: '3',
      isUrgent: false,
      reason: 'late',
      colors: ['red'],
    }
    const content = { number: '7', mail: 'a@b.example', amount: 100, times: 3, isUrgent: false, reason: 'late', colors: ['red'] }
    expect(contentOf(fields, draft)).toEqual(content)
  })

  test('leave what was not edited as it was: seconds, another time zone, an empty text, and what has no field', () => {
    for (const at of ['2026-11-19T10:00:37.250Z', '2026-11-19T10:00:37+05:30']) {
      const given = { amount: 5, at, note: '', colors: ['red'], tone: { dry: true } }
      const draft = { ...typedFrom(fields, given), amount: '4' }
      expect(editedFrom(schema, given, draft)).toMatchObject({ amount: 4, at, note: '', colors: ['red'], tone: { dry: true } })
      expect(editedFrom(schema, given, { ...draft, at: '2026-01-02T03:04' })).toMatchObject({
        at: new Date(2026, 0, 2, 3, 4).toISOString(),
      })
      expect(undrawnIn(schema, given)).toEqual(['tone'])
    }
    const strict = { ...schema, additionalProperties: false }
    expect(editedFrom(strict, { times: 1, tone: 'dry' }, { times: '1' })).toEqual({ number: '', times: 1, colors: [] })
  })

  test('leave a text that is no number to the server, and read a moment in the time zone of the person', () => {
    expect(contentOf(fields, { times: 'three' })).toMatchObject({ times: 'three' })
    expect(contentOf(fields, { at: '2026-01-02T03:04' })).toMatchObject({ at: new Date(2026, 0, 2, 3, 4).toISOString() })
  })
})
