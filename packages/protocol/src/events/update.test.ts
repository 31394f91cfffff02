import { expect, test } from 'vitest'
import { copyTextDelta, delta, updateSchema } from './update.ts'

const plain = delta(0, 'a')

test('the fast copy of a text delta equals the result of the schema', () => {
  const odd = [undefined, null, -1, -0, 0, 0.5, 1, 2 ** 53, Number.NaN, '1', '', {}, [], 'text', 'delta']
  const changed = Object.keys(plain).flatMap(field => odd.map(value => ({ ...plain, [field]: value })))
  const additions = odd.flatMap(value => [
    value,
    { type: value, text: 'a' },
    { type: 'text', text: value },
    { type: 'text', text: 'a', more: 1 },
  ])
  const values = [
    plain,
    delta(3, 'word'),
    { ...plain, more: 1 },
    ...odd,
    ...changed,
    ...additions.map(addition => ({ ...plain, delta: addition })),
  ]
  for (const value of values) {
    const copied = copyTextDelta(value)
    if (copied) expect([value, copied]).toEqual([value, updateSchema.parse(value)])
  }
  expect(values.filter(value => copyTextDelta(value)).length).toBeGreaterThan(5)
})

test('a later change by the agent to its delta does not change the copy', () => {
  const given = delta(0, 'a')
  const copied = copyTextDelta(given)
  Object.assign(given.delta, { text: 'b' })
  expect(copied).toEqual(plain)
})
