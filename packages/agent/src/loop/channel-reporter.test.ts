import { delta, type Update } from '@rivulet/protocol'
import { expect, test } from 'vitest'
import { collect } from '../../test/collect.ts'
import { user } from '../model/conversation.ts'
import { scriptedModel } from '../scripted/scripted-model.ts'
import { channelReporter } from './channel-reporter.ts'
import { runAgent } from './run-agent.ts'

test('a slow reader gets every update in order, and the run does not wait for it', async () => {
  const reporter = channelReporter()
  const { updates } = await collect(
    runAgent({ model: scriptedModel(['A long answer, in many pieces.']), messages: [user('go')], observers: [reporter] }),
  )
  const late: Update[] = []
  for await (const update of reporter) {
    await new Promise(resolve => setTimeout(resolve, 1))
    late.push(update)
  }
  expect(late).toEqual(updates)
})

test('a reader that stops early does not affect the run', async () => {
  const reporter = channelReporter()
  reporter.update?.(delta(0, 'a'))
  for await (const _ of reporter) break
  const { result } = await collect(
    runAgent({ model: scriptedModel(['A long answer, in many pieces.']), messages: [user('go')], observers: [reporter] }),
  )
  expect(result?.text).toBe('A long answer, in many pieces.')
})

test('a reader that falls too far behind receives the queued updates and then an error, with no update skipped', async () => {
  const reporter = channelReporter({ capacity: 3 })
  for (const words of ['a', 'b', 'c', 'd', 'e']) reporter.update?.(delta(0, words))
  const received: Update[] = []
  const reading = (async () => {
    for await (const update of reporter) received.push(update)
  })()
  await expect(reading).rejects.toMatchObject({ code: 'stream_backpressure' })
  expect(received).toEqual([delta(0, 'a'), delta(0, 'b'), delta(0, 'c')])
})
