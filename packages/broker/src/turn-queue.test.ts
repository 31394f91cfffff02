/** Turns on their way to workers, over a real queue. */
import type { Redis } from 'ioredis'
import { expect, onTestFinished, test } from 'vitest'
import { newTask, openLogs } from '../../../test/support/logs.ts'
import { createTurnConsumer, createTurnQueue, type Dispatch } from './turn-queue.ts'

test('[input 50] a turn reaches a consumer of its agent, once for each dispatch', async () => {
  const { queue, consume } = openQueue()
  const [one, two] = [dispatch({ agent: 'a' }), dispatch({ agent: 'b' })]
  await queue.enqueue([one, two, one])
  await queue.enqueue([one])
  const { taken } = consume('a')
  await expect.poll(() => taken).toEqual([one.turn])
  await queue.enqueue([{ ...one, dispatch: 2 }])
  await expect.poll(() => taken).toEqual([one.turn, one.turn])
  expect(await queue.find([two])).toEqual([true])
})

test('higher priority comes first, and among equals who came first', async () => {
  const { queue, consume } = openQueue()
  const turns = [0, 50, 100, 50, 0].map(priority => dispatch({ priority }))
  for (const turn of turns) await queue.enqueue([turn])
  const { taken } = consume('a', 1)
  await expect.poll(() => taken.length).toBe(5)
  expect(taken.map(id => turns.findIndex(({ turn }) => turn === id))).toEqual([2, 1, 3, 0, 4])
})

test('a delayed turn comes when its time has come', async () => {
  const { queue, consume } = openQueue()
  const { taken } = consume('a')
  const begun = performance.now()
  const [later, now] = [dispatch({ delayMs: 400 }), dispatch({})]
  await queue.enqueue([later, now])
  await expect.poll(() => taken).toEqual([now.turn, later.turn])
  expect(performance.now() - begun).toBeGreaterThanOrEqual(400)
})

test('the queue knows which dispatches it holds: waiting, delayed and running ones, not those that are done or were never there', async () => {
  const { queue, consume } = openQueue()
  const [running, waiting, delayed] = [dispatch({}), dispatch({}), dispatch({ delayMs: 60_000 })]
  await queue.enqueue([running])
  let finish = () => {}
  const { taken } = consume('a', 1, () => new Promise<void>(resolve => (finish = resolve)))
  await expect.poll(() => taken.length).toBe(1)
  await queue.enqueue([waiting, delayed])
  expect(await queue.find([running, waiting, delayed, { ...running, dispatch: 2 }])).toEqual([true, true, true, false])
  finish()
  await expect.poll(() => queue.find([running, waiting])).toEqual([false, true])
  finish()
})

test('a turn whose worker died with it comes to another one within seconds', async () => {
  const { queue, consume, connections } = openQueue()
  const turn = dispatch({})
  await queue.enqueue([turn])
  let end = () => {}
  const { taken: dying } = consume('a', 1, () => new Promise<void>(resolve => (end = resolve)))
  onTestFinished(() => end())
  await expect.poll(() => dying).toEqual([turn.turn])
  for (const connection of connections) connection.disconnect()
  const { taken: next } = consume('a', 1)
  await expect.poll(() => next, { timeout: 20_000 }).toEqual([turn.turn])
})

test('a turn for which there is no room goes back, and comes to somebody who has some', async () => {
  const { queue, consume } = openQueue()
  const crowded = consume('a', 1, async () => {
    crowded.setConcurrency(0)
    return 'no room'
  })
  const turn = dispatch({})
  await queue.enqueue([turn])
  await expect.poll(() => crowded.taken).toEqual([turn.turn])
  expect(await queue.find([turn])).toEqual([true])
  const roomy = consume('a', 1)
  await expect.poll(() => roomy.taken).toEqual([turn.turn])
  await expect.poll(() => queue.find([turn])).toEqual([false])
  expect(crowded.taken).toEqual([turn.turn])
})

test('a limit that is raised counts at once, also from nothing', async () => {
  const { queue, consume } = openQueue()
  const ends: (() => void)[] = []
  const { taken, setConcurrency } = consume('a', 1, () => new Promise<void>(resolve => ends.push(resolve)))
  onTestFinished(() => {
    for (const end of ends) end()
  })
  await queue.enqueue([dispatch({}), dispatch({}), dispatch({})])
  await expect.poll(() => taken.length).toBe(1)
  setConcurrency(2)
  await expect.poll(() => taken.length).toBe(2)
  setConcurrency(0)
  for (const end of ends) end()
  setConcurrency(5)
  await expect.poll(() => taken.length).toBe(3)
})

test('a turn that fails is taken from the queue like any other: trying again is not its business', async () => {
  const { queue, consume } = openQueue()
  const turn = dispatch({})
  await queue.enqueue([turn])
  const { taken } = consume('a', 1, () => Promise.reject(new Error('no')))
  await expect.poll(() => taken.length).toBe(1)
  await expect.poll(() => queue.find([turn])).toEqual([false])
})

function dispatch(fields: Partial<Dispatch>): Dispatch {
  return { turn: newTask(), agent: 'a', dispatch: 1, delayMs: 0, priority: 0, ...fields }
}

function openQueue() {
  const { keys, redis, connect } = openLogs()
  const connections: Redis[] = []
  const onError = () => {}
  const queue = createTurnQueue({ redis, keys, onError })
  onTestFinished(() => queue.close())
  return { queue, consume, connections }

  function consume(agent: string, concurrency = 10, work: () => Promise<unknown> = async () => {}) {
    const taken: string[] = []
    const run = async (turn: string) => {
      taken.push(turn)
      return (await work()) !== 'no room'
    }
    const connection = connect()
    connections.push(connection)
    const consumer = createTurnConsumer({ agent, redis: connection, keys, concurrency, run, onError })
    onTestFinished(() => consumer.close())
    return { taken, setConcurrency: consumer.setConcurrency }
  }
}
