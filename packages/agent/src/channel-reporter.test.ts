import { delta, type Update } from '@rivulet/protocol'
import { expect, test } from 'vitest'
import { hear } from '../test/hear.ts'
import { channelReporter } from './channel-reporter.ts'
import { user } from './conversation.ts'
import { runAgent } from './run-agent.ts'
import { scriptedModel } from './scripted-model.ts'

test('[item 31] a slow reader gets every update in order, and the run does not wait for it', async () => {
  const reporter = channelReporter()
  const { updates } = await hear(
    runAgent({ model: scriptedModel(['A long answer, in many pieces.']), messages: [user('go')], observers: [reporter] }),
  )
  const late: Update[] = []
  for await (const update of reporter) {
    await new Promise(resolve => setTimeout(resolve, 1))
    late.push(update)
  }
  expect(late).toEqual(updates)
})

test('[B53] a reader who leaves harms nobody', async () => {
  const reporter = channelReporter()
  reporter.update?.(delta(0, 'a'))
  for await (const _ of reporter) break
  const { result } = await hear(
    runAgent({ model: scriptedModel(['A long answer, in many pieces.']), messages: [user('go')], observers: [reporter] }),
  )
  expect(result?.text).toBe('A long answer, in many pieces.')
})

test('a reader who falls too far behind gets what was kept and then an error, never a hole', async () => {
  const reporter = channelReporter({ capacity: 3 })
  for (const words of ['a', 'b', 'c', 'd', 'e']) reporter.update?.(delta(0, words))
  const heard: Update[] = []
  const reading = (async () => {
    for await (const update of reporter) heard.push(update)
  })()
  await expect(reading).rejects.toMatchObject({ code: 'stream_backpressure' })
  expect(heard).toEqual([delta(0, 'a'), delta(0, 'b'), delta(0, 'c')])
})
