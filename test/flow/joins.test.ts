/** Inputs for a task that is busy: they join the turn that runs, or the one that runs next, and none is lost or overtaken. */
import { createClient } from '@rivulet/client'
import { type Content, type Message, type Turn as StoredTurn, text } from '@rivulet/protocol'
import { defineAgent } from '@rivulet/worker'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { rest, say, scripted } from '../support/agents/scripts.ts'
import { createGate } from '../support/gate.ts'
import { faultsOf } from '../support/judge/task-laws.ts'
import { startOwnWorker } from '../support/platform/own-worker.ts'
import { type Platform, startPlatform } from '../support/platform/platform.ts'
import type { ErrorReply } from '../support/platform/platform-client.ts'
import { until } from '../support/until.ts'
import { watch } from '../support/viewers/viewer.ts'

let platform: Platform
beforeAll(async () => {
  platform = await startPlatform()
})
afterAll(() => platform.close())

const words = ({ content }: { content: Content }) => (content.type === 'text' ? content.text : content.type)
const shown = (messages: Message[]) => messages.map(({ turn, author, ...message }) => `${turn} ${author}: ${words(message)}`)
const ends = (turns: StoredTurn[]) => turns.map(({ number, status, joinedTo }) => [number, status, joinedTo ?? null])

/** Says what it got, waits, takes what came, and says that. */
function listener(
  name: string,
  { before = async () => {}, rounds = 1 }: { before?: (round: number) => Promise<unknown>; rounds?: number },
) {
  return defineAgent(name, async turn => {
    await turn.send(`got ${turn.inputs.map(content => words({ content })).join('+')}`)
    for (let round = 1; round <= rounds; round += 1) {
      await before(round)
      const taken = await turn.takeInputs()
      if (taken.length > 0) await turn.send(`took ${taken.map(words).join('+')}`)
    }
  })
}

describe('inject', () => {
  test('becomes a message of the turn that runs, at its next safe point, and ends with it, announced once', async () => {
    const { open, opened } = createGate()
    await startOwnWorker(platform, [listener('injected', { before: () => opened })])
    const { task } = await platform.client.createTask({ agent: 'injected', input: 'one' })
    const viewer = watch(task.id, { urls: platform.urls })
    await viewer.until('it speaks', ({ text }) => text() === 'got one')
    const turn = await platform.client.addTurn(task.id, { input: ['two', 'three'], ifBusy: 'inject' })
    expect([turn.number, turn.status, turn.joinedTo]).toEqual([2, 'queued', undefined])
    open()
    await viewer.ended
    const messages = await platform.client.messages(task.id)
    expect(shown(messages)).toEqual(['1 user: one', '1 agent: got one', '1 user: two', '1 user: three', '1 agent: took two+three'])
    expect(ends((await platform.client.detail(task.id)).turns)).toEqual([
      [1, 'completed', null],
      [2, 'completed', 1],
    ])
    const events = (await platform.log(task.id)).map(({ event }) => event)
    const joined = events.findIndex(({ type }) => type === 'turn.joined')
    expect(events[joined]).toMatchObject({ turn: 2, into: 1, index: 2 })
    expect(events[joined + 1]).toMatchObject({ type: 'message.started', author: 'user', index: 2, turn: 1 })
    expect(viewer.state().turns.map(({ number, status, joinedTo }) => [number, status, joinedTo ?? null])).toEqual([
      [1, 'completed', null],
      [2, 'completed', 1],
    ])
    expect(await faultsOf(platform, task.id)).toEqual([])
  })

  test('runs as a turn of its own, in order, if the turn that runs does not take it', async () => {
    const { task } = await platform.client.createTask(scripted([say(0, 'x'), rest(300)], { input: 'one' }))
    await platform.client.addTurn(task.id, { input: 'two', ifBusy: 'inject' })
    await platform.client.addTurn(task.id, { input: 'three' })
    const { turns } = await platform.client.waitForEnd(task.id)
    expect(ends(turns)).toEqual([1, 2, 3].map(number => [number, 'completed', null]))
    const messages = await platform.client.messages(task.id)
    expect(shown(messages).filter(line => line.includes('user'))).toEqual(['1 user: one', '2 user: two', '3 user: three'])
    expect(await faultsOf(platform, task.id)).toEqual([])
  })

  test('is announced as queued before it joins, even if the API that accepted it died before it announced it', async () => {
    const { open, opened } = createGate()
    await startOwnWorker(platform, [listener('unannounced', { before: () => opened })])
    const { task } = await platform.client.createTask({ agent: 'unannounced', input: 'one' })
    await platform.client.waitForTask(task.id, ({ turns }) => turns[0]?.status === 'running')
    await platform.pg.query(
      `insert into turns (id, task, tenant, number, status, attempt, input, queued_at, run_at, deadline, joins)
       select gen_random_uuid(), task, tenant, 2, 'queued', 0, $2, now(), now(), deadline, 'inject' from turns where task = $1`,
      [task.id, text('two')],
    )
    open()
    expect(await faultsOf(platform, task.id)).toEqual([])
    const ofTheSecond = (await platform.log(task.id)).flatMap(({ event }) => (event.turn === 2 ? [event.type] : []))
    expect(ofTheSecond).toEqual(['turn.queued', 'turn.joined', 'turn.finished'])
  })

  test('does not overtake an input that was queued before it', async () => {
    const { open, opened } = createGate()
    await startOwnWorker(platform, [listener('ordered', { before: () => opened })])
    const { task } = await platform.client.createTask({ agent: 'ordered', input: 'one' })
    await platform.client.waitForTask(task.id, ({ turns }) => turns[0]?.status === 'running')
    await platform.client.addTurn(task.id, { input: 'two' })
    await platform.client.addTurn(task.id, { input: 'three', ifBusy: 'inject' })
    open()
    await platform.client.waitForEnd(task.id)
    const inputs = shown(await platform.client.messages(task.id)).filter(line => line.includes('user'))
    expect(inputs).toEqual(['1 user: one', '2 user: two', '2 user: three'])
    expect(await faultsOf(platform, task.id)).toEqual([])
  })

  test('is offered again to an attempt that follows a failed one, and is a message once', async () => {
    const { open, opened } = createGate()
    let attempts = 0
    const agent = defineAgent({
      ...{ name: 'again', maxAttempts: 2 },
      run: async turn => {
        attempts += 1
        await turn.send(`attempt ${turn.attempt}`)
        await opened
        const taken = await turn.takeInputs()
        await turn.send(`took ${taken.map(words).join('+')}`)
        if (turn.attempt === 1) throw new Error('once')
      },
    })
    await startOwnWorker(platform, [agent])
    const { task } = await platform.client.createTask({ agent: 'again', input: 'one' })
    await platform.client.waitForTask(task.id, ({ turns }) => turns[0]?.status === 'running')
    await platform.client.addTurn(task.id, { input: 'two', ifBusy: 'inject' })
    open()
    const { turns } = await platform.client.waitForEnd(task.id)
    expect([attempts, ends(turns)]).toEqual([
      2,
      [
        [1, 'completed', null],
        [2, 'completed', 1],
      ],
    ])
    expect(shown(await platform.client.messages(task.id))).toEqual([
      '1 user: one',
      '1 agent: attempt 2',
      '1 user: two',
      '1 agent: took two',
    ])
    expect(await faultsOf(platform, task.id)).toEqual([])
  })

  test('that a failed attempt took, and the last one did not, runs next', async () => {
    const { open, opened } = createGate()
    const agent = defineAgent({
      ...{ name: 'forgetful', maxAttempts: 2 },
      run: async turn => {
        await turn.send(`attempt ${turn.attempt} of ${turn.text}`)
        await opened
        if (turn.attempt === 1) await turn.takeInputs()
        if (turn.attempt === 1 && turn.number === 1) throw new Error('once')
      },
    })
    await startOwnWorker(platform, [agent])
    const { task } = await platform.client.createTask({ agent: 'forgetful', input: 'one' })
    await platform.client.waitForTask(task.id, ({ turns }) => turns[0]?.status === 'running')
    await platform.client.addTurn(task.id, { input: 'two', ifBusy: 'inject' })
    open()
    const { turns } = await platform.client.waitForEnd(task.id)
    expect(ends(turns)).toEqual([
      [1, 'completed', null],
      [2, 'completed', null],
    ])
    const inputs = shown(await platform.client.messages(task.id)).filter(line => line.includes('user'))
    expect(inputs).toEqual(['1 user: one', '2 user: two'])
    expect(await faultsOf(platform, task.id)).toEqual([])
  })

  test('is canceled with the turn that took it, and runs next if only that turn is canceled before it takes it', async () => {
    const { open, opened } = createGate()
    await startOwnWorker(platform, [listener('stopped', { before: round => (round === 1 ? opened : new Promise(() => {})), rounds: 2 })])
    const { task } = await platform.client.createTask({ agent: 'stopped', input: 'one' })
    await platform.client.waitForTask(task.id, ({ turns }) => turns[0]?.status === 'running')
    await platform.client.addTurn(task.id, { input: 'two', ifBusy: 'inject' })
    open()
    await until('it took the input', async () => (await platform.log(task.id)).some(({ event }) => event.type === 'turn.joined'))
    await platform.client.addTurn(task.id, { input: 'three', ifBusy: 'inject' })
    const reply = await platform.client.post(`/v1/tasks/${task.id}/cancel`, { scope: 'turn' })
    expect(reply.status).toBe(200)
    await platform.client.waitForTask(task.id, ({ turns }) => turns[2]?.status === 'running')
    expect(ends((await platform.client.detail(task.id)).turns)).toEqual([
      [1, 'canceled', null],
      [2, 'canceled', 1],
      [3, 'running', null],
    ])
    await platform.client.cancel(task.id)
    const messages = shown(await platform.client.messages(task.id)).filter(line => line.includes('user'))
    expect(messages).toEqual(['1 user: one', '1 user: two', '3 user: three'])
    expect(await faultsOf(platform, task.id)).toEqual([])
  })
})

describe('merge', () => {
  test('joins the next queued turn when that is claimed: one turn with all inputs, in order', async () => {
    const { open, opened } = createGate()
    await startOwnWorker(platform, [defineAgent('merged', turn => turn.send('x').then(() => opened))])
    const { task } = await platform.client.createTask({ agent: 'merged', input: 'zero' })
    await platform.client.waitForTask(task.id, ({ turns }) => turns[0]?.status === 'running')
    await platform.client.addTurn(task.id, { input: 'one' })
    await platform.client.addTurn(task.id, { input: ['two', 'three'], ifBusy: 'merge' })
    await platform.client.addTurn(task.id, { input: 'four', ifBusy: 'merge' })
    await platform.client.addTurn(task.id, { input: 'five' })
    open()
    const { turns } = await platform.client.waitForEnd(task.id)
    expect(ends(turns)).toEqual([
      [1, 'completed', null],
      [2, 'completed', null],
      [3, 'completed', 2],
      [4, 'completed', 2],
      [5, 'completed', null],
    ])
    const started = (await platform.log(task.id)).map(({ event }) => event).find(event => event.type === 'turn.started' && event.turn === 2)
    expect(started).toMatchObject({ firstIndex: 6, inputs: [{ index: 2 }, { index: 3 }, { index: 4 }, { index: 5 }] })
    const inputs = shown(await platform.client.messages(task.id)).filter(line => line.includes('user'))
    expect(inputs).toEqual(['1 user: zero', '2 user: one', '2 user: two', '2 user: three', '2 user: four', '5 user: five'])
    expect(await faultsOf(platform, task.id)).toEqual([])
  })

  test('with a debounce moves the start of that turn, up to a limit', async () => {
    const task = (await platform.client.createTask({ agent: 'echo', start: false })).task.id
    const send = async (input: string, debounceMaxMs?: number) => {
      await platform.client.addTurn(task, { input, ifBusy: 'merge', debounceMs: 600_000, ...(debounceMaxMs && { debounceMaxMs }) })
      const [first] = (await platform.client.detail(task)).turns
      return Date.parse(first?.dueAt ?? '') - Date.parse(first?.queuedAt ?? '')
    }
    expect(await send('one')).toBe(600_000)
    const moved = await send('two')
    expect(moved).toBeGreaterThan(600_000)
    // Its first input was accepted a while ago: the limit counts from there, and nothing moves a start back.
    expect(await send('three', 600_001)).toBe(moved)
    await platform.client.addTurn(task, { input: 'now', ifBusy: 'interrupt' })
    const { turns } = await platform.client.waitForEnd(task)
    expect(ends(turns)).toEqual([1, 2, 3, 4].map(number => [number, 'completed', number === 1 ? null : 1]))
    expect(shown(await platform.client.messages(task)).at(-1)).toBe('1 agent: one\n\ntwo\n\nthree\n\nnow')
    expect(await faultsOf(platform, task)).toEqual([])
  })

  test('a debounce without merge, or a limit without a debounce, is rejected', async () => {
    const { task } = await platform.client.createTask({ agent: 'echo', start: false })
    for (const body of [
      { debounceMs: 5 },
      { ifBusy: 'inject', debounceMs: 5 },
      { ifBusy: 'merge', debounceMaxMs: 5 },
      { ifBusy: 'merge', debounceMs: -1 },
      { ifBusy: 'shout' },
    ]) {
      const reply = await platform.client.post<ErrorReply>(`/v1/tasks/${task.id}/turns`, { input: 'x', ...body })
      expect([reply.status, reply.body.error.code]).toEqual([400, 'validation_failed'])
    }
    const reply = await platform.client.post<ErrorReply>(`/v1/tasks/${task.id}/cancel`, { scope: 'some' })
    expect(reply.status).toBe(400)
  })
})

describe('interrupt', () => {
  test('cancels the turn that runs, and merges what was queued with the new input, in order', async () => {
    const { task } = await platform.client.createTask(scripted([say(0, 'x'), rest(60_000)], { input: 'one' }))
    await platform.client.waitForTask(task.id, ({ turns }) => turns[0]?.status === 'running')
    const quick = { params: { mode: 'generator', steps: [say(0, 'done')] } }
    await platform.client.addTurn(task.id, { input: 'two', ...quick })
    await platform.client.addTurn(task.id, { input: 'three', ...quick })
    const turn = await platform.client.addTurn(task.id, { input: 'now', ...quick, ifBusy: 'interrupt' })
    expect(turn.number).toBe(4)
    const { turns } = await platform.client.waitForEnd(task.id)
    expect(ends(turns)).toEqual([
      [1, 'canceled', null],
      [2, 'completed', null],
      [3, 'completed', 2],
      [4, 'completed', 2],
    ])
    const inputs = shown(await platform.client.messages(task.id)).filter(line => line.includes('user'))
    expect(inputs).toEqual(['1 user: one', '2 user: two', '2 user: three', '2 user: now'])
    expect(await faultsOf(platform, task.id)).toEqual([])
  })

  test('of a task that waits for its time starts it at once, with both inputs', async () => {
    const { task } = await platform.client.createTask({ agent: 'echo', input: 'early', delayMs: 3_600_000 })
    await platform.client.addTurn(task.id, { input: 'now', ifBusy: 'interrupt' })
    const { turns } = await platform.client.waitForEnd(task.id)
    expect(ends(turns)).toEqual([
      [1, 'completed', null],
      [2, 'completed', 1],
    ])
    expect(shown(await platform.client.messages(task.id)).at(-1)).toBe('1 agent: early\n\nnow')
    expect(await faultsOf(platform, task.id)).toEqual([])
  })
})

test('the client injects, gets the result of the turn that its input joined, and waits for it in one request', async () => {
  const gates = [createGate(), createGate()]
  let begun = 0
  await startOwnWorker(platform, [listener('called', { before: () => gates[begun++]?.opened ?? Promise.resolve() })])
  const rivulet = createClient({ url: platform.url })
  for (const { open } of gates) {
    const task = await rivulet.tasks.create({ agent: 'called', input: 'one' })
    await platform.client.waitForTask(task.id, ({ turns }) => turns[0]?.status === 'running')
    const waiting = platform.client.post<{ turn: StoredTurn; messages: Message[] }>(`/v1/tasks/${task.id}/turns?wait=30s`, {
      input: 'two',
      ifBusy: 'inject',
    })
    await platform.client.waitForTask(task.id, ({ turns }) => turns.length === 2)
    const turn = await task.send('three', { ifBusy: 'inject' })
    expect(turn.input).toEqual(text('three'))
    open()
    const result = await task.result()
    expect([result.text, result.turn.number]).toEqual(['got one\n\ntook two+three', 1])
    const { body } = await waiting
    expect([body.turn.number, body.turn.joinedTo, body.messages.length]).toEqual([2, 1, 5])
  }
})
