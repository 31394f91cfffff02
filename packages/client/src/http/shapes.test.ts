import { expect, test } from 'vitest'
import { isEntity, readEvent } from './shapes.ts'

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
