import { describe, expect, test } from 'vitest'
import { contentOf, draftOf, fieldsOf } from './form-fields.ts'

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

  test('leave a text that is no number to the server, and read a moment in the time zone of the person', () => {
    expect(contentOf(fields, { times: 'three' })).toMatchObject({ times: 'three' })
    expect(contentOf(fields, { at: '2026-01-02T03:04' })).toMatchObject({ at: new Date(2026, 0, 2, 3, 4).toISOString() })
  })
})
