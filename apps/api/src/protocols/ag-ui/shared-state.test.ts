/** The shared state of AG-UI: whatever an agent sets, a client that applies the events has it. */
import { isObject, type Json, type State } from '@rivulet/protocol'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import type { AgUiChunk } from './sent-messages.ts'
import { createSharedState } from './shared-state.ts'

/** Few names, so that values share some of them. */
const names = fc.constantFrom('a', 'b', '', 'a/b', '~', '~1')
const { value: values } = fc.letrec<{ value: Json }>(tie => ({
  value: fc.oneof(
    { maxDepth: 3 },
    fc.constantFrom<Json>(null, 0, 'a long enough text', [1, 2]),
    fc.dictionary(names, tie('value'), { maxKeys: 4 }),
  ),
}))

test('a client that applies the events has the state of the task after each of them', () => {
  fc.assert(
    fc.property(fc.array(values, { minLength: 1, maxLength: 6 }), states => {
      const shared = createSharedState()
      let client: Json = 'its own'
      for (const [place, changing] of states.entries()) {
        // So that most patches are shorter than the whole.
        const value = { note: 'a note '.repeat(50), changing }
        client = shared.send(stateOf(place + 1, value)).reduce(read, client)
        expect(client).toEqual(value)
      }
    }),
  )
})

test('the first event is a snapshot, a small change a patch, and what is not a change nothing', () => {
  const shared = createSharedState()
  const value = { city: 'Oslo', days: [1, 2, 3], note: 'A text that is longer than the change of another field' }
  expect(shared.send(null)).toEqual([])
  expect(shared.send(stateOf(1, value))).toEqual([{ type: 'STATE_SNAPSHOT', snapshot: value }])
  expect(shared.send(stateOf(2, { ...value, city: 'Rome' }))).toEqual([
    { type: 'STATE_DELTA', delta: [{ op: 'replace', path: '/city', value: 'Rome' }] },
  ])
  expect(shared.send(stateOf(3, { ...value, city: 'Rome' }))).toEqual([])
})

test('a task without a state leaves the client its own, and an attempt that set one takes it back', () => {
  const shared = createSharedState()
  expect(shared.send(stateOf(0, null))).toEqual([])
  shared.send(stateOf(1, { a: 1 }))
  expect(shared.send(stateOf(0, null))).toEqual([{ type: 'STATE_SNAPSHOT', snapshot: null }])
})

test("a name that AG-UI's client does not patch comes in a snapshot", () => {
  const shared = createSharedState()
  const before = { note: 'A text that is longer than the change of another field' }
  shared.send(stateOf(1, before))
  const after = JSON.parse(JSON.stringify(before).replace('{', '{"__proto__":1,'))
  expect(shared.send(stateOf(2, after))).toEqual([{ type: 'STATE_SNAPSHOT', snapshot: after }])
})

function stateOf(version: number, value: Json): State {
  return { version, value }
}

/** The state after an event, as RFC 6902 has it. */
function read(state: Json, { type, snapshot, delta }: AgUiChunk): Json {
  if (type === 'STATE_SNAPSHOT') return snapshot as Json
  return (delta as { op: string; path: string; value: Json }[]).reduce((known, { op, path, value }) => {
    const names = path.split('/').slice(1)
    return change(
      known,
      names.map(name => name.replaceAll('~1', '/').replaceAll('~0', '~')),
      op,
      value,
    )
  }, state)
}

function change(known: Json, [name, ...rest]: string[], op: string, value: Json): Json {
  if (name === undefined) return value
  if (!isObject(known) || (op !== 'add' || rest.length > 0) !== Object.hasOwn(known, name)) throw new Error(`${op} of ${name}`)
  const { [name]: inner = null, ...others } = known
  return op === 'remove' && rest.length === 0 ? others : { ...others, [name]: change(inner, rest, op, value) }
}
