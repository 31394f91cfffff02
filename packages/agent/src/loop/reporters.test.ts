import { delta, done, type Update } from '@rivulet/protocol'
import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import { collect } from '../../test/collect.ts'
import { user } from '../model/conversation.ts'
import { call, say, think } from '../scripted/script.ts'
import { scriptedModel } from '../scripted/scripted-model.ts'
import { defineTool } from '../tools/tool.ts'
import type { Observer } from './observers.ts'
import { bufferedReporter, textReporter, usageReporter } from './reporters.ts'
import { runAgent } from './run-agent.ts'

const look = defineTool({ name: 'look', description: '', input: z.object({}), run: () => 'seen' })
const script = [[think('hm'), say('Let me look.'), call('look')], 'I saw it.']

test('the text reporter writes text as it is streamed, and names the tools', async () => {
  const pieces: string[] = []
  await run(textReporter(piece => pieces.push(piece)))
  expect(pieces.join('')).toBe('Let me look.\n[look]\nI saw it.\n')
  expect(pieces.length).toBeGreaterThan(6)
})

test('the usage reporter sums the usage of all responses', async () => {
  const reporter = usageReporter()
  const { result } = await run(reporter)
  expect(reporter.total()).toEqual(result?.usage)
  expect(reporter.total().outputTokens).toBeGreaterThan(0)
})

describe('the buffered reporter passes on', () => {
  test('every update in order, in batches of its capacity, the rest at the end of the run', async () => {
    const batches: Update[][] = []
    const { updates } = await run(bufferedReporter(batch => batches.push(batch), { capacity: 5 }))
    expect(batches.flat()).toEqual(updates)
    expect(batches.slice(0, -1).every(({ length }) => length === 5)).toBe(true)
    expect(batches.length).toBeGreaterThan(2)
    const whole: Update[][] = []
    const again = await run(bufferedReporter(batch => whole.push(batch), { capacity: 10_000 }))
    expect(whole).toEqual([again.updates])
  })

  test('what waits, on demand and when it is disposed of, once', () => {
    const batches: Update[][] = []
    {
      using reporter = bufferedReporter(batch => batches.push(batch))
      reporter.update?.(delta(0, 'a'))
      reporter.flush()
      reporter.flush()
      reporter.update?.(done(0))
    }
    expect(batches).toEqual([[delta(0, 'a')], [done(0)]])
  })
})

function run(observer: Observer) {
  return collect(runAgent({ model: scriptedModel(script), tools: [look], messages: [user('go')], observers: [observer] }))
}
