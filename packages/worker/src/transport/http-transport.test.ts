/** The polling and the appends of a worker without Redis. */
import type { AppendBody, AppendResult } from '@rivulet/contract/internal'
import { RivuletError } from '@rivulet/protocol'
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

test('an append of several turns is written for the others when the task of the first is gone', async () => {
  const calls: string[][] = []
  const append = async (appends: AppendBody['appends']): Promise<AppendResult[]> => {
    calls.push(appends.map(({ turnId }) => turnId))
    if (appends[0]?.turnId === 'gone') throw new RivuletError('task_not_found', 'No such task')
    return appends.map(() => 'ok')
  }
  const never = () => new Promise<never>(() => {})
  const silent: Logger = { debug() {}, info() {}, warn() {}, error() {}, child: () => silent }
  const transport = createHttpTransport(
    { worker: 'w', server: { next: never, hints: never, append }, log: silent },
    { onOver() {}, onAnswered() {}, onReconnect() {} },
  )
  onTestFinished(() => transport.close())
  const appendOf = (turnId: string) => ({ task: turnId, turnId, claimId: 'c', epoch: 1, first: 1, entries: [] })
  expect(await transport.append(['gone', 'one', 'two'].map(appendOf))).toEqual(['fenced', 'ok', 'ok'])
  expect(calls).toEqual([['gone', 'one', 'two'], ['gone'], ['one'], ['two']])
})
