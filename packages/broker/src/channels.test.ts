import { expect, test } from 'vitest'
import { openLogs } from '../../../test/support/platform/logs.ts'
import { createChannels } from './channels.ts'

test('a message goes to the handler of its channel alone, byte for byte', async () => {
  const { redis, connect, keys } = openLogs()
  const channels = createChannels(connect())
  const heard: [string, string][] = []
  const [one, two] = [keys.workerChannel('one'), keys.workerChannel('b\u00fcro')]
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

test('after a break, every channel is heard again but those that were left, and onReset is called once', async () => {
  const { redis, connect, keys } = openLogs()
  const connection = connect()
  const channels = createChannels(connection)
  let resets = 0
  channels.onReset(() => (resets += 1))
  const [kept, left] = [keys.workerChannel('kept'), keys.workerChannel('left')]
  for (const channel of [kept, left]) await channels.hear(channel, { handle: () => {}, isSharded: true })
  expect(resets).toBe(0)
  connection.disconnect(true)
  await Promise.all([channels.leave(left), expect.poll(() => resets).toBe(1)])
  expect([await redis.publish(kept, ''), await redis.publish(left, '')]).toEqual([1, 0])
})
