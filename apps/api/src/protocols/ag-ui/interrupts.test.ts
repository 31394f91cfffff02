/** The responses to interrupts: what approves, edits and declines, and what does neither. */
import type { Wait } from '@rivulet/protocol'
import { expect, test } from 'vitest'
import { answerOf, interruptOf } from './interrupts.ts'

const approval: Pick<Wait, 'kind' | 'actions'> = { kind: 'approval', actions: ['accept', 'edit', 'decline'] }

test.each([
  [true, { action: 'accept' }],
  [{ approved: true }, { action: 'accept' }],
  [
    { approved: true, editedArgs: { amount: 1 } },
    { action: 'edit', content: { amount: 1 } },
  ],
  [
    { approved: false, reason: 'too much' },
    { action: 'decline', comment: 'too much' },
  ],
  [
    { action: 'edit', content: { amount: 2 } },
    { action: 'edit', content: { amount: 2 } },
  ],
])('%j responds to an approval', (payload, answer) => {
  expect(answerOf(approval, { interruptId: 'i', status: 'resolved', payload })).toEqual(answer)
})

test.each([undefined, null, {}, 'no', { approved: 'no' }, { accepted: true }])('%j does not approve, and is an error', payload => {
  expect(() => answerOf(approval, { interruptId: 'i', status: 'resolved', payload })).toThrow('validation failed')
})

test('an approval offers to edit the arguments only where the turn takes them', () => {
  const wait = { ...approval, id: 'i', name: 'n', title: 't', expiresAt: '', metadata: {} } as unknown as Wait
  const fieldsOf = (actions: Wait['actions']) => Object.keys(interruptOf({ ...wait, actions }, undefined).responseSchema.properties ?? {})
  expect([fieldsOf(['accept', 'edit', 'decline']), fieldsOf(['accept', 'decline'])]).toEqual([
    ['approved', 'reason', 'editedArgs'],
    ['approved', 'reason'],
  ])
})
