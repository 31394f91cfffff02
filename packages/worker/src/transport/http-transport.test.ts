/** The polling of a worker without Redis. */
import { expect, onTestFinished, test, vi } from 'vitest'
import type { Logger } from '../logger.ts'
import { createHttpTransport } from './http-transport.ts'

test('a worker that is full again and again polls only while it has room, and keeps no listener', async () => {
  const warnings: Error[] = []
  const onWarning = (warning: Error) => warnings.push(warning)
  process.on('warning', onWarning)
  onTestFinished(() => void process.off('warning', onWarning))
  const next = vi.fn(async () => null)
  const never = () => new Promise<never>(() => {})
  const silent: Logger = { debug() {}, info() {}, warn() {}, error() {}, child: () => silent }
  const transport = createHttpTransport(
    { worker: 'w', server: { next, hints: never, append: never }, log: silent },
    { onOver() {}, onAnswered() {}, onReconnect() {} },
  )
  let used = 1
  const intake = transport.take(
    { agents: ['echo'], queues: {} },
    () => ({ used, most: 1 }),
    async () => 'done',
  )
  for (let change = 0; change < 20; change += 1) {
    intake.resize()
    await new Promise(setImmediate)
  }
  expect(next).not.toHaveBeenCalled()
  expect(warnings).toEqual([])
  next.mockImplementation(async () => {
    used = 1
    return null
  })
  used = 0
  intake.resize()
  await vi.waitFor(() => expect(next).toHaveBeenCalledTimes(1))
  await intake.close()
  transport.close()
})
