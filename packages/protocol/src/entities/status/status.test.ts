import { describe, expect, test } from 'vitest'
import { hasEnded } from './status.ts'
import {
  messageStatusSchema,
  messageTransitions,
  outcomeStatusSchema,
  taskStatusSchema,
  taskTransitions,
  turnStatusesBefore,
  turnStatusSchema,
  turnTransitions,
} from './status-schema.ts'

describe('transitions', () => {
  test('an ended turn never changes; new input queues an ended task again', () => {
    for (const status of taskStatusSchema.options) {
      expect(turnTransitions[status].length === 0).toBe(hasEnded(status))
      if (hasEnded(status)) expect(taskTransitions[status]).toEqual(['queued'])
      else expect(taskTransitions[status]).toEqual(turnTransitions[status])
    }
  })

  test('a closed message stays closed', () => {
    const open = messageStatusSchema.options.filter(status => messageTransitions[status].length > 0)
    expect(open).toEqual(['streaming'])
    expect([...messageTransitions.streaming].sort()).toEqual(messageStatusSchema.options.filter(status => status !== 'streaming').sort())
  })

  test('a turn completes only from running, waits only from running, and is queued again between attempts', () => {
    expect(turnStatusesBefore('completed')).toEqual(['running'])
    expect(turnStatusesBefore('waiting')).toEqual(['running'])
    expect(turnStatusesBefore('running')).toEqual(['queued', 'waiting'])
    expect(turnStatusesBefore('queued')).toEqual(['running', 'waiting'])
  })

  test('a turn that has not ended can be canceled and can fail', () => {
    const living = turnStatusSchema.options.filter(status => !hasEnded(status))
    expect(turnStatusesBefore('canceled')).toEqual(living)
    expect(turnStatusesBefore('failed')).toEqual(living)
  })
})

test('a turn has ended with an outcome, or is discarded', () => {
  expect(turnStatusSchema.options.filter(status => hasEnded(status))).toEqual([...outcomeStatusSchema.options, 'discarded'])
})
