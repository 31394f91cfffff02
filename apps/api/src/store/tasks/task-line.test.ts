import { randomUUID } from 'node:crypto'
import { taskIdSchema } from '@rivulet/protocol'
import { expect, onTestFinished, test } from 'vitest'
import { createGate } from '../../../../../test/support/gate.ts'
import { openStore } from '../../../test/open-store.ts'
import { TaskLine, taskTransaction } from './task-line.ts'

test('calls of one task run one after the other, in order, and a failure ends no other', async () => {
  const line = new TaskLine()
  const ran: string[] = []
  let running = 0
  const call = (name: string) =>
    line.run('task', async () => {
      running += 1
      await new Promise(setImmediate)
      ran.push(`${name} ${running}`)
      running -= 1
      if (name === 'second') throw new Error(name)
      return name
    })
  const results = await Promise.allSettled(['first', 'second', 'third'].map(call))
  expect(ran).toEqual(['first 1', 'second 1', 'third 1'])
  expect(results.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'fulfilled'])
})

test('a call of another task does not wait', async () => {
  const line = new TaskLine()
  const open = hold(line)
  expect(await line.run('other', async () => 'done')).toBe('done')
  await open()
})

test('a call that waits too long is rejected, and those behind it still wait for those before it', async () => {
  const line = new TaskLine(20)
  const open = hold(line)
  await expect(line.run('task', async () => 'late')).rejects.toThrow('The task is busy with other calls; retry')
  const ran: string[] = []
  const next = line.run('task', async () => ran.push('next')).catch(() => {})
  await new Promise(setImmediate)
  expect(ran).toEqual([])
  await open()
  await next
  expect(await line.run('task', async () => 'after')).toBe('after')
})

/** Occupies the line of a task until the function that it returns is called. */
function hold(line: TaskLine): () => Promise<void> {
  let release = () => {}
  const opened = new Promise<void>(resolve => {
    release = resolve
  })
  const held = line.run('task', () => opened)
  return () => {
    release()
    return held
  }
}

test('a tenant that names the task of another tenant does not hold up its calls', async () => {
  const { databaseFor, close } = await openStore()
  onTestFinished(close)
  const task = taskIdSchema.parse(randomUUID())
  const gate = createGate()
  const foreign = taskTransaction(databaseFor('foreign'), task, () => gate.opened)
  expect(await taskTransaction(databaseFor('own'), task, async () => 'done')).toBe('done')
  gate.open()
  await foreign
})
