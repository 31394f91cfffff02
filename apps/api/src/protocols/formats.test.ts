import { watchTask } from '@rivulet/contract/events'
import { streamFormatSchema } from '@rivulet/contract/fields'
import { expect, test } from 'vitest'
import { formats } from './formats.ts'

test.each(streamFormatSchema.options)('a request for events in %s may name a turn only if the dialect streams one turn', format => {
  const isOfTurn = formats[format].scope === 'turn'
  expect(watchTask.query?.safeParse({ format, turn: '1' }).success).toBe(isOfTurn)
  expect(watchTask.query?.safeParse({ format, follow: 'true' }).success).toBe(!isOfTurn)
})
