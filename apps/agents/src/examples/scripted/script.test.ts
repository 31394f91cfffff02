import { expect, test } from 'vitest'
import { scriptSchema, stepsOf } from './script.ts'

test('one script is for all attempts', () => {
  const script = scriptSchema.parse({ steps: [{ sleep: 1 }] })
  expect([1, 2, 9].map(attempt => stepsOf(script, attempt))).toEqual(Array(3).fill([{ sleep: 1 }]))
  expect(script.mode).toBe('generator')
})

test('a script for each attempt: those beyond the last repeat it, and a gap repeats the one before', () => {
  const script = scriptSchema.parse({ mode: 'manual', attempts: { 1: [{ throw: 'a' }], 3: [{ throw: 'c' }], 12: [] } })
  expect([1, 2, 3, 4, 11, 12, 13].map(attempt => stepsOf(script, attempt))).toEqual([
    [{ throw: 'a' }],
    [{ throw: 'a' }],
    [{ throw: 'c' }],
    [{ throw: 'c' }],
    [{ throw: 'c' }],
    [],
    [],
  ])
})

test('steps nest, and contents and deltas are those of the protocol', () => {
  const steps = [
    { start: { index: 0, content: { type: 'text', text: 'a' }, metadata: { b: 1 } } },
    { repeat: { times: 2, steps: [{ repeat: { times: 3, steps: [{ delta: { index: 0, delta: { type: 'text', text: 'c' } } }] } }] } },
    { full: { index: 1, content: { type: 'data', data: null } } },
    { done: { index: 0 } },
    { custom: { name: 'n', data: [] } },
    { exit: 1 },
  ]
  expect(scriptSchema.parse({ steps })).toMatchObject({ steps })
})

test.each([
  ['nothing', null],
  ['no steps', {}],
  ['both kinds', { steps: [], attempts: {} }],
  ['an unknown mode', { mode: 'telepathy', steps: [] }],
  ['an unknown step', { steps: [{ dance: 1 }] }],
  ['two steps in one', { steps: [{ sleep: 1, throw: 'x' }] }],
  ['an unknown content', { steps: [{ start: { index: 0, content: { type: 'smell' } } }] }],
  ['a negative index', { steps: [{ done: { index: -1 } }] }],
  ['an attempt that is no number', { attempts: { first: [] } }],
])('%s is no script', (_, script) => {
  expect(scriptSchema.safeParse(script).success).toBe(false)
})
