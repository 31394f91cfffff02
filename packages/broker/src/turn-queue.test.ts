/** The queue of turns, on a real Redis. */
import type { Redis } from 'ioredis'
import { expect, onTestFinished, test, vi } from 'vitest'
import { newTask, openLogs } from '../../../test/support/platform/logs.ts'
import { createTurnConsumer, createTurnQueue, type Dispatch } from './turn-queue.ts'

test('a turn reaches a consumer of its agent, once for each dispatch', async () => {
  const { queue, consume } = openQueue()
  const [one, two] = [dispatch({ agent: 'a' }), dispatch({ agent: 'b' })]
  await queue.enqueue([one, two, one])
  await queue.enqueue([one])
  const { taken } = consume('a')
  await expect.poll(() => taken).toEqual([one.turnId])
  await queue.enqueue([{ ...one, dispatch: 2 }])
  await expect.poll(() => taken).toEqual([one.turnId, one.turnId])
  expect(await queue.find([two])).toEqual([true])
})

test('turns of higher priority run first, and those of equal priority in order of arrival', async () => {
  const { queue, consume } = openQueue()
  const turns = [0, 50, 100, 50, 0].map(priority => dispatch({ priority }))
  for (const turn of turns) await queue.enqueue([turn])
  const { taken } = consume('a', 1)
  await expect.poll(() => taken.length).toBe(5)
  expect(taken.map(id => turns.findIndex(({ turnId }) => turnId === id))).toEqual([2, 1, 3, 0, 4])
})

test('a delayed turn reaches a consumer after its delay', async () => {
  const { queue, consume } = openQueue()
  const { taken } = consume('a')
  const begun = performance.now()
  const [later, now] = [dispatch({ delayMs: 400 }), dispatch({})]
  await queue.enqueue([later, now])
  await expect.poll(() => taken).toEqual([now.turnId, later.turnId])
  expect(performance.now() - begun).toBeGreaterThanOrEqual(400)
})

test('the queue finds the dispatches it holds: waiting, delayed and running ones, but not done or unknown ones', async () => {
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

test('a turn whose worker died reaches another worker within seconds', async () => {
  const { queue, consume, connections } = openQueue()
  const turn = dispatch({})
  await queue.enqueue([turn])
  let end = () => {}
  const { taken: dying } = consume('a', 1, () => new Promise<void>(resolve => (end = resolve)))
  onTestFinished(() => end())
  await expect.poll(() => dying).toEqual([turn.turnId])
  for (const connection of connections) connection.disconnect()
  const { taken: next } = consume('a', 1)
  await expect.poll(() => next).toEqual([turn.turnId])
})

test('a turn that a worker has no capacity for returns to the queue and reaches another worker', async () => {
  const { queue, consume } = openQueue()
  const crowded = consume('a', 1, async () => {
    crowded.setConcurrency(0)
    return 1
  })
  const turn = dispatch({})
  await queue.enqueue([turn])
  await expect.poll(() => crowded.taken).toEqual([turn.turnId])
  expect(await queue.find([turn])).toEqual([true])
  const roomy = consume('a', 1)
  await expect.poll(() => roomy.taken).toEqual([turn.turnId])
  await expect.poll(() => queue.find([turn])).toEqual([false])
  expect(crowded.taken).toEqual([turn.turnId])
})

test('a turn that goes back for a while comes again after it, also to the consumer that gave it back', async () => {
  const { queue, consume } = openQueue()
  const turn = dispatch({})
  await queue.enqueue([turn])
  const begun = performance.now()
  let times = 0
  const { taken } = consume('a', 1, async () => (times++ === 0 ? 300 : 'done'))
  await expect.poll(() => taken).toEqual([turn.turnId, turn.turnId])
  expect(performance.now() - begun).toBeGreaterThanOrEqual(299)
})

test('a delay can be ended, and the caller learns which jobs had one', async () => {
  const { queue, consume } = openQueue()
  const [delayed, waiting] = [dispatch({ delayMs: 3_600_000 }), dispatch({ agent: 'b' })]
  await queue.enqueue([delayed, waiting])
  const { taken } = consume('a')
  expect(await queue.endDelay([delayed, waiting, { ...delayed, dispatch: 2 }])).toEqual([true, false, false])
  await expect.poll(() => taken).toEqual([delayed.turnId])
  expect(await queue.endDelay([delayed])).toEqual([false])
})

test('a delay counts from the time of Redis, whatever the clock of the process that sends', async () => {
  const { queue, consume } = openQueue()
  const { taken } = consume('a')
  vi.useFakeTimers({ now: Date.now() + 3_600_000, toFake: ['Date'] })
  const turn = dispatch({ delayMs: 100 })
  await queue.enqueue([turn]).finally(() => vi.useRealTimers())
  await expect.poll(() => taken).toEqual([turn.turnId])
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

test('a consumer that is given room at any moment, while it gives a job back, takes the job again', async () => {
  const { queue, consume } = openQueue()
  let hasRoom = true
  let giveRoom = async () => {}
  const { setConcurrency } = consume('a', 1, async () => {
    if (hasRoom) return 'done'
    void giveRoom()
    return 1
  })
  for (let moment = 0; moment < 60; moment += 1) {
    hasRoom = false
    setConcurrency(0)
    giveRoom = async () => {
      for (let i = 0; i < moment; i += 1) await null
      hasRoom = true
      setConcurrency(1)
    }
    const turn = dispatch({})
    await queue.enqueue([turn])
    // Where it was paused before it saw the job, it does not take it.
    const untaken = setTimeout(() => void giveRoom(), 30)
    await expect.poll(() => queue.find([turn]), { interval: 5 }).toEqual([false])
    clearTimeout(untaken)
  }
})

test('a job that fails is removed from the queue, because the queue does not retry turns', async () => {
  const { queue, consume } = openQueue()
  const turn = dispatch({})
  await queue.enqueue([turn])
  const { taken } = consume('a', 1, () => Promise.reject(new Error('no')))
  await expect.poll(() => taken.length).toBe(1)
  await expect.poll(() => queue.find([turn])).toEqual([false])
})

function dispatch(fields: Partial<Dispatch>): Dispatch {
  return { turnId: newTask(), agent: 'a', dispatch: 1, delayMs: 0, priority: 0, ...fields }
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
    const run = async (turnId: string) => {
      taken.push(turnId)
      const end = await work()
      return typeof end === 'number' ? { backInMs: end } : ('done' as const)
    }
    const connection = connect()
    connections.push(connection)
    const consumer = createTurnConsumer({ queue: agent, redis: connection, keys, concurrency, run, onError })
    onTestFinished(() => consumer.close())
    return { taken, setConcurrency: consumer.setConcurrency }
  }
}
