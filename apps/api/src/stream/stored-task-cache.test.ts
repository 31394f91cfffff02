import { expect, test } from 'vitest'
import type { SnapshotBase } from './snapshot.ts'
import { createStoredTaskCache } from './stored-task-cache.ts'

const rowsOf = (epoch: number) => ({ epoch }) as SnapshotBase

test('rows that were being loaded when they became outdated are loaded again', async () => {
  const loads: ((rows: SnapshotBase) => void)[] = []
  const cache = createStoredTaskCache(() => new Promise(resolve => loads.push(resolve)))
  const early = cache.ask(1)
  cache.outdate()
  loads[0]?.(rowsOf(1))
  await early
  expect([cache.get(), cache.isCurrent()]).toEqual([null, false])
  const late = cache.ask(1)
  loads[1]?.(rowsOf(2))
  await late
  expect([cache.get(), cache.isCurrent()]).toEqual([rowsOf(2), true])
})

test('rows that are outdated stay until newer ones are there', () => {
  const cache = createStoredTaskCache(() => Promise.reject(new Error('No rows are loaded')))
  cache.put(rowsOf(1))
  cache.outdate()
  expect([cache.get(), cache.isCurrent()]).toEqual([rowsOf(1), false])
  cache.put(rowsOf(2))
  expect([cache.get(), cache.isCurrent()]).toEqual([rowsOf(2), true])
})
