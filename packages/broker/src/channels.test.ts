import { expect, test } from 'vitest'
import { openLogs } from '../../../test/support/platform/logs.ts'
import { createChannels } from './channels.ts'

test('a message goes to the handler of its channel alone, byte for byte', async () => {
  const { redis, connect, keys } = openLogs()
  const channels = createChannels(connect())
  const heard: [string, string][] = []
  const [one, two] = [keys.workerChannel('one'), keys.workerChannel('two')]
  for (const channel of [one, two])
    await channels.hear(channel, { handle: message => heard.push([channel, message.toString('hex')]), isSharded: false })
  await redis.publish(one, Buffer.from('ff00', 'hex'))
  await redis.publish(two, '\u00e4')
  await expect
    .poll(() => heard)
    .toEqual([
      [one, 'ff00'],
      [two, 'c3a4'],
    ])
  await channels.leave(one)
  expect(await redis.publish(one, 'gone')).toBe(0)
})

test('a channel that could not be subscribed to is heard with the next connection', async () => {
  const { redis, connect, keys } = openLogs()
  const connection = connect()
  connection.options.enableOfflineQueue = false
  const channels = createChannels(connection)
  const channel = keys.workerChannel('early')
  const heard: string[] = []
  await expect(channels.hear(channel, { handle: message => heard.push(message.toString()), isSharded: false })).rejects.toThrow()
  await expect.poll(() => redis.publish(channel, 'now')).toBe(1)
  await expect.poll(() => heard).toEqual(['now'])
})
