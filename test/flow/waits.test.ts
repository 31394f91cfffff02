/** Turns that wait: they ask, park, are answered and go on, and what they emitted before is neither lost nor emitted twice. */
import { call, defineTool, say, scriptedModel } from '@rivulet/agent'
import type { Event, Json, Wait } from '@rivulet/protocol'
import { defineAgent, type Turn } from '@rivulet/worker'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { z } from 'zod'
import { faultsOfViewers } from '../support/judge/judge-viewers.ts'
import { faultsOf } from '../support/judge/task-laws.ts'
import { metric } from '../support/platform/metrics.ts'
import { type OwnWorkerOptions, startOwnWorker } from '../support/platform/own-worker.ts'
import { type Platform, startPlatform } from '../support/platform/platform.ts'
import type { ErrorReply } from '../support/platform/platform-client.ts'
import { until } from '../support/until.ts'
import { watch } from '../support/viewers/viewer.ts'

let platform: Platform

beforeAll(async () => {
  platform = await startPlatform({ workers: 0 })
})
afterAll(() => platform.close())

describe('a turn that asks', () => {
  test('parks, and goes on with the answer where it was', async () => {
    const runs: string[] = []
    const aborted: unknown[] = []
    const { task, wait, viewer } = await asking('parks', async turn => {
      runs.push('run')
      turn.signal.addEventListener('abort', () => aborted.push((turn.signal.reason as Error).cause))
      await turn.send('before')
      const sum = await turn.step('sum', async () => {
        runs.push('step')
        await turn.send('in a step')
        return 7
      })
      const { action, content, by } = await turn.ask('refund', { title: 'Refund?', hold: 0, metadata: { order: 5 } })
      await turn.send(`${action} ${JSON.stringify(content)} ${by} ${sum}`)
    })
    const parked = await untilParked(task)
    expect(parked.turns).toMatchObject([{ status: 'waiting', attempt: 1, waits: [{ id: wait.id, status: 'open', kind: 'approval' }] }])
    expect(await textsOf(task)).toEqual(['before', 'in a step'])
    await until('the park is counted', async () => (await metric(platform.urls, 'rivulet_turns_parked_total')) > 0)
    expect((await answer(task, wait.id, { action: 'accept' })).status).toBe(200)
    const { turns } = await platform.client.waitForEnd(task)
    expect(turns).toMatchObject([{ status: 'completed', attempt: 1, waits: [{ status: 'answered', answer: { action: 'accept' } }] }])
    expect(await textsOf(task)).toEqual(['before', 'in a step', 'accept undefined undefined 7'])
    expect(runs).toEqual(['run', 'step', 'run'])
    // A heartbeat that is answered after the end of the turn may be another reason, when the second run is over.
    expect(aborted[0]).toMatchObject({ code: 'turn_over', message: expect.stringContaining('parked') })
    expect(await typesIn(task)).toEqual([
      ...['turn.queued', 'turn.started', 'message.replaced', 'message.replaced', 'turn.waiting'],
      ...['turn.resumed', 'message.replaced', 'turn.finished'],
    ])
    expect([...(await faultsOf(platform, task)), ...(await faultsOfViewers(platform, [viewer]))]).toEqual([])
  })

  test('is answered within its hold, and never leaves its worker', async () => {
    let runs = 0
    const { task, wait } = await asking('held', async turn => {
      runs += 1
      const { action } = await turn.ask('go', { title: 'Go?', hold: '60s' })
      await turn.send(action)
    })
    expect((await platform.client.detail(task)).task.status).toBe('waiting')
    await answer(task, wait.id, { action: 'decline', comment: 'no' })
    await platform.client.waitForEnd(task)
    expect([await textsOf(task), runs]).toEqual([['decline'], 1])
    expect(await typesIn(task)).toEqual([
      'turn.queued',
      'turn.started',
      'turn.waiting',
      'turn.resumed',
      'message.replaced',
      'turn.finished',
    ])
    expect(await faultsOf(platform, task)).toEqual([])
  })
})

describe('a turn that is parked', () => {
  test('keeps the time that it had left, however long it waits', async () => {
    const { task, wait, agent } = await asking('patient', async turn => {
      await turn.ask('go', { title: 'Go?', hold: 0 })
      await turn.send('in time')
    })
    await untilParked(task)
    await platform.pg.query(
      "update turns set deadline = deadline - interval '1 day', parked_at = parked_at - interval '1 day' where task = $1",
      [task],
    )
    // The reconciler ends this turn, whose deadline is later.
    const { task: overdue } = await platform.client.createTask({ agent, delayMs: 3_600_000 })
    await platform.pg.query('update turns set started_at = now(), deadline = now() where task = $1', [overdue.id])
    expect((await platform.client.waitForEnd(overdue.id)).turns).toMatchObject([{ error: { code: 'deadline_exceeded' } }])
    await answer(task, wait.id, { action: 'accept' })
    expect((await platform.client.waitForEnd(task)).turns).toMatchObject([{ status: 'completed' }])
    expect(await textsOf(task)).toEqual(['in time'])
  })

  test('leaves a worker that has no free slot at once, whatever its hold', async () => {
    const handler = (turn: Turn) => turn.ask('go', { title: 'Go?', hold: '1h' }).then(() => {})
    const { task, wait } = await asking('full', handler, {}, { concurrency: 1 })
    await untilParked(task)
    const other = await asking('roomy', handler, {}, { concurrency: 2 })
    await answer(other.task, other.wait.id, { action: 'accept' })
    await platform.client.waitForEnd(other.task)
    const parked = await platform.pg.query('select 1 from turns where task = $1 and resumed is not null', [other.task])
    expect(parked.rows).toEqual([])
    await answer(task, wait.id, { action: 'accept' })
    await platform.client.waitForEnd(task)
  })
})

describe('whatever fails', () => {
  const waiting = async (turn: Turn) => {
    await turn.send('one')
    for (const name of ['a', 'b', 'c']) {
      const { action } = await turn.ask(name, { title: name, hold: 0 })
      await turn.step(`after ${name}`, () => turn.send(`${name} ${action}`).then(() => {}))
      await turn.send(`then ${name}`)
    }
  }
  const rows = ['one', 'a accept', 'then a', 'b accept', 'then b', 'c accept', 'then c']

  test('a log that expired while the turn was parked is opened again with what is stored', async () => {
    const { task, wait } = await asking('expired-log', waiting)
    await untilParked(task)
    // Until nothing is owed: the log is closed by then.
    await until('the log expires', async () => (await platform.redis.pttl(platform.keys.stream(task))) > 0)
    await platform.redis.del(platform.keys.stream(task), platform.keys.state(task))
    const late = watch(task, { urls: [platform.url] })
    await answer(task, wait.id, { action: 'accept' })
    await untilOpen(task, 'b')
    expect(await textsOf(task)).toEqual(rows.slice(0, 3))
    await answerNext(task)
    await untilOpen(task, 'c')
    await answerNext(task)
    await platform.client.waitForEnd(task)
    expect(await textsOf(task)).toEqual(rows)
    expect([...(await faultsOf(platform, task)), ...(await faultsOfViewers(platform, [late]))]).toEqual([])
  })

  test('an attempt that fails after a park is tried again from there', async () => {
    let runs = 0
    const { task, wait, viewer } = await asking('fails', async turn => {
      runs += 1
      await turn.send('kept')
      await turn.ask('go', { title: 'Go?', hold: 0 })
      await turn.send(`attempt ${turn.attempt}`)
      if (runs === 2) throw new Error('not yet')
    })
    await untilParked(task)
    await answer(task, wait.id, { action: 'accept' })
    const { turns } = await platform.client.waitForEnd(task)
    expect(turns).toMatchObject([{ status: 'completed', attempt: 2 }])
    expect(await textsOf(task)).toEqual(['kept', 'attempt 2'])
    expect(await faultsOfViewers(platform, [viewer])).toEqual([])
  })

  test('a message that differs when the handler runs again fails the turn, and names the message', async () => {
    let runs = 0
    const { task, wait } = await asking('differs', async turn => {
      runs += 1
      await turn.send('same')
      await turn.send(`run ${runs}`)
      await turn.ask('go', { title: 'Go?', hold: 0 })
    })
    await untilParked(task)
    await answer(task, wait.id, { action: 'accept' })
    const { turns } = await platform.client.waitForEnd(task)
    expect(turns).toMatchObject([{ status: 'failed', error: { code: 'bad_call', message: expect.stringContaining('Message 1 ') } }])
    expect(await textsOf(task)).toEqual(['same', 'run 1'])
  })

  test('a cancel of a parked turn closes its waits, and keeps what it emitted', async () => {
    const { task, wait, viewer } = await asking('canceled', async turn => {
      await turn.send('said')
      await turn.ask('go', { title: 'Go?', hold: 0 })
    })
    await untilParked(task)
    await platform.client.cancel(task)
    const { turns } = await platform.client.waitForEnd(task)
    expect(turns).toMatchObject([{ status: 'canceled', waits: [{ status: 'canceled' }] }])
    expect(await textsOf(task)).toEqual(['said'])
    expect((await answer(task, wait.id, { action: 'accept' })).body.error.code).toBe('wait_closed')
    expect([...(await faultsOf(platform, task)), ...(await faultsOfViewers(platform, [viewer]))]).toEqual([])
  })
})

describe('an answer', () => {
  test('the first wins, the same again is repeated, another is refused, and bad content leaves the wait open', async () => {
    const schema = { type: 'object', properties: { note: { type: 'string', minLength: 1 } }, required: ['note'] } as const
    const { task, wait } = await asking('form', async turn => {
      const { content } = await turn.ask('form', { title: 'Form', schema: { ...schema, required: ['note'] }, hold: '1h' })
      await turn.send(JSON.stringify(content))
    })
    const codes = async (body: object) => {
      const { status, body: given, headers } = await answer(task, wait.id, body)
      return [status, given.error?.code ?? headers.get('idempotent-replayed')]
    }
    expect(await codes({ action: 'accept', content: { note: '' } })).toEqual([400, 'validation_failed'])
    expect(await codes({ action: 'accept' })).toEqual([400, 'validation_failed'])
    expect(await codes({ action: 'edit', content: { note: 'x' } })).toEqual([400, 'validation_failed'])
    expect(await codes({ action: 'shout' })).toEqual([400, 'validation_failed'])
    const many = await Promise.all(['x', 'y', 'x', 'y', 'x'].map(note => codes({ action: 'accept', content: { note } })))
    expect(many.filter(([status, mark]) => status === 200 && mark === null)).toHaveLength(1)
    expect(many.filter(([status]) => status === 409).length + many.filter(([, mark]) => mark === 'true').length).toBe(4)
    const { turns } = await platform.client.waitForEnd(task)
    expect(turns[0]?.waits).toMatchObject([{ status: 'answered' }])
    const other = await answer(task, wait.id, { action: 'decline' })
    expect([other.status, other.body.error.code, other.body.error.details?.[0]]).toEqual([
      409,
      'already_answered',
      { path: '/answer/action', reason: 'accept' },
    ])
  })

  test('of another task, and of no task, is not found', async () => {
    const { task, wait } = await asking('mine', turn => turn.ask('go', { title: 'Go?' }).then(() => {}))
    const { task: other } = await platform.client
      .finishedTask({ agent: 'echo', input: 'hi' })
      .catch(() => ({ task: { id: crypto.randomUUID() } }))
    expect((await answer(other.id, wait.id, { action: 'accept' })).status).toBe(404)
    expect((await answer(task, crypto.randomUUID(), { action: 'accept' })).body.error.code).toBe('not_found')
    await platform.client.cancel(task)
  })

  test('after expiry is refused, and the handler gets its decline, or wait_expired', async () => {
    const { task, wait } = await asking('expires', async turn => {
      const declined = await turn.ask('soft', { title: 'Soft', hold: 0, expiresIn: '300ms', onExpire: 'decline' })
      await turn.send(declined.action)
      await turn.ask('hard', { title: 'Hard', hold: '1h', expiresIn: '300ms' })
    })
    const { turns } = await platform.client.waitForEnd(task)
    expect(turns).toMatchObject([
      { status: 'failed', error: { code: 'wait_expired' }, waits: [{ status: 'expired' }, { status: 'expired' }] },
    ])
    expect(await textsOf(task)).toEqual(['decline'])
    expect((await answer(task, wait.id, { action: 'accept' })).status).toBe(410)
    expect(await faultsOf(platform, task)).toEqual([])
  })

  test('of several waits that are asked together is for the one that it names', async () => {
    const { task, waits } = await asking('several', async turn => {
      const { a, b } = await turn.askAll({ a: { title: 'A' }, b: { title: 'B' } })
      await turn.send(`${a.action} ${b.action}`)
    })
    expect(waits.map(({ name }) => name)).toEqual(['a', 'b'])
    await answer(task, String(waits[1]?.id), { action: 'decline' })
    await answer(task, String(waits[0]?.id), { action: 'accept' })
    await platform.client.waitForEnd(task)
    expect(await textsOf(task)).toEqual(['accept decline'])
    expect(await faultsOf(platform, task)).toEqual([])
  })
})

describe('the inbox', () => {
  test('has the open waits that fit every filter, oldest first, page by page', async () => {
    const { task, agent, waits } = await asking('inbox', async turn => {
      await turn.askAll({
        first: { title: 'First', assignee: 'ada', metadata: { order: 5 } },
        second: { title: 'Second', assignee: 'ben', metadata: { order: 5 }, schema: { type: 'object', properties: {} } },
      })
    })
    const other = await asking('inbox-other', turn =>
      turn.ask('third', { title: 'Third', assignee: 'ada', metadata: { order: 6 } }).then(() => {}),
    )
    const found = async (query: string) => {
      const { body } = await platform.client.get<{ data: Wait[]; nextCursor: string | null }>(`/v1/waits?${query}`)
      const own = body.data.filter(wait => [task, other.task].includes(wait.task ?? ''))
      return own.map(({ name }) => name)
    }
    const page = await platform.client.get<{ nextCursor: string }>(`/v1/waits?task=${task}&limit=1`)
    const all = {
      '': ['first', 'second', 'third'],
      [`task=${task}`]: ['first', 'second'],
      [`task=${task}&limit=1`]: ['first'],
      [`task=${task}&cursor=${page.body.nextCursor}`]: ['second'],
      [`agent=${agent}`]: ['first', 'second'],
      'assignee=ada': ['first', 'third'],
      'assignee=cy': [],
      'kind=form': ['second'],
      'kind=approval,form': ['first', 'second', 'third'],
      'metadata.order=6': ['third'],
      'metadata.order=5&assignee=ben': ['second'],
    }
    for (const [query, names] of Object.entries(all)) expect([query, await found(query)]).toEqual([query, names])
    await answer(task, String(waits[0]?.id), { action: 'accept' })
    expect([await found('assignee=ada'), await found('status=answered&assignee=ada')]).toEqual([['third'], ['first']])
    await Promise.all([task, other.task].map(id => platform.client.cancel(id)))
  })
})

describe('a race', () => {
  test('of responses with the time of the wait has one end, the one that the handler gets', async () => {
    await startOwnWorker(platform, [
      defineAgent('racing', async turn => {
        const { action } = await turn.ask('go', { title: 'Go?', hold: 0, expiresIn: '700ms', onExpire: 'decline' })
        await turn.send(action)
      }),
    ])
    await Promise.all(
      Array.from({ length: 12 }, async (_, i) => {
        const { task } = await platform.client.createTask({ agent: 'racing' })
        const { turns } = await platform.client.waitForTask(task.id, ({ turns }) => turns.some(({ waits }) => waits?.length))
        const [wait] = turns[0]?.waits ?? []
        const startAt = Date.parse(wait?.expiresAt ?? '') - 30 + i * 10
        await until('the time of the wait is near', () => Date.now() >= startAt, { intervalMs: 1 })
        const { status } = await answer(task.id, String(wait?.id), { action: 'accept' })
        const ended = await platform.client.waitForEnd(task.id)
        const outcome = status === 200 ? ['answered', 'accept'] : ['expired', 'decline']
        expect([ended.turns[0]?.waits?.[0]?.status, ...(await textsOf(task.id))]).toEqual(outcome)
        expect(await faultsOf(platform, task.id)).toEqual([])
      }),
    )
  })

  test('of a cancel with the park leaves a canceled turn, whichever is first', async () => {
    await startOwnWorker(platform, [
      defineAgent('leaving', async turn => {
        await turn.send('said')
        await turn.ask('go', { title: 'Go?', hold: 0 })
      }),
    ])
    await Promise.all(
      Array.from({ length: 12 }, async () => {
        const { task } = await platform.client.createTask({ agent: 'leaving' })
        await platform.client.waitForTask(task.id, ({ turns }) => turns.some(({ waits }) => waits?.length))
        await platform.client.cancel(task.id)
        const { turns } = await platform.client.waitForEnd(task.id)
        expect(turns).toMatchObject([{ status: 'canceled', waits: [{ status: 'canceled' }] }])
        expect(await textsOf(task.id)).toEqual(['said'])
        expect(await faultsOf(platform, task.id)).toEqual([])
      }),
    )
  })
})

describe('signals and times', () => {
  test('a signal before its wait is kept, one after it is delivered', async () => {
    const { task } = await asking('paid', async turn => {
      await turn.ask('go', { title: 'Go?', hold: 0 })
      const early = await turn.waitFor<{ id: number }>('early')
      const late = await turn.waitFor<{ id: number }>('late', { hold: 0 })
      await turn.send(`${early.id} ${late.id}`)
    })
    const signal = (name: string, id: number) =>
      platform.client.post<{ status: string }>(`/v1/tasks/${task}/signals`, { name, data: { id } })
    expect((await signal('early', 1)).body).toEqual({ status: 'kept' })
    await answerNext(task)
    await untilOpen(task, 'late')
    await untilParked(task)
    expect((await signal('late', 2)).body).toEqual({ status: 'delivered' })
    await platform.client.waitForEnd(task)
    expect(await textsOf(task)).toEqual(['1 2'])
    expect(await faultsOf(platform, task)).toEqual([])
  })

  test('a signal is kept for 24 hours', async () => {
    const { task } = await asking('late', async turn => {
      await turn.ask('go', { title: 'Go?', hold: 0 })
      await turn.send(String(await turn.waitFor<number>('paid', { hold: 0 })))
    })
    for (const data of [1, 2]) await platform.client.post(`/v1/tasks/${task}/signals`, { name: 'paid', data })
    const age = "update signals set created_at = now() - $2 * interval '1 hour' where task = $1 and data::text = $3"
    await platform.pg.query(age, [task, 25, '1'])
    await platform.pg.query(age, [task, 23, '2'])
    await answerNext(task)
    await platform.client.waitForEnd(task)
    expect(await textsOf(task)).toEqual(['2'])
  })

  test.each([
    ['kept', {}],
    ['kept', { data: null }],
    ['delivered', {}],
    ['delivered', { data: null }],
  ])('a signal without data is %s (%j)', async (status, body) => {
    const { task } = await asking(`bare-${status}`, async turn => {
      if (status === 'kept') await turn.ask('go', { title: 'Go?', hold: 0 })
      await turn.send(JSON.stringify(await turn.waitFor('paid', { hold: 0 })))
    })
    await untilOpen(task, status === 'kept' ? 'go' : 'paid')
    const sent = await platform.client.post(`/v1/tasks/${task}/signals`, { name: 'paid', ...body })
    expect([sent.status, sent.body]).toEqual([202, { status }])
    if (status === 'kept') await answerNext(task)
    await platform.client.waitForEnd(task)
    expect(await textsOf(task)).toEqual(['null'])
  })

  test('a sleep ends by itself, parked or not', async () => {
    const { task } = await asking('sleeps', async turn => {
      await turn.sleep('short', { for: '200ms' })
      await turn.ask('go', { title: 'Go?', hold: 0, expiresIn: '1s', onExpire: 'decline' })
      await turn.sleep('until', { until: new Date(Date.now() - 1_000) })
      await turn.send('awake')
    })
    await platform.client.waitForEnd(task)
    expect(await textsOf(task)).toEqual(['awake'])
    expect(await faultsOf(platform, task)).toEqual([])
  })
})

describe('new input while a turn waits', () => {
  test('queues behind it, is refused, declines what it asks, or ends it', async () => {
    const handler = async (turn: Turn) => {
      const { action, comment } = await turn.ask('go', { title: 'Go?', hold: 0 })
      await turn.send(`${turn.number} ${action} ${comment}`)
    }
    const { task } = await asking('busy', handler, { input: 'first' })
    await untilParked(task)
    expect((await platform.client.post(`/v1/tasks/${task}/turns`, { input: 'no', ifBusy: 'reject' })).status).toBe(409)
    await platform.client.addTurn(task, { input: 'more', ifBusy: 'decline' })
    await platform.client.waitForTask(task, ({ turns }) => turns[0]?.status === 'completed' && turns[1]?.status === 'waiting')
    expect(await textsOf(task)).toEqual(['first', '1 decline new input', 'more'])
    await untilParked(task)
    await platform.client.addTurn(task, { input: 'last', ifBusy: 'interrupt' })
    const { turns } = await platform.client.waitForTask(task, ({ turns }) => turns[2]?.status === 'waiting')
    expect(turns.map(({ status }) => status)).toEqual(['completed', 'canceled', 'waiting'])
    await platform.client.cancel(task)
    expect(await faultsOf(platform, task)).toEqual([])
  })
})

describe('the approval of tools', () => {
  test('a person accepts, edits or declines, the policy denies, the client runs its own tool, and no call of the model is repeated', async () => {
    const ran: unknown[] = []
    let responses = 0
    const tools = [
      defineTool({
        ...{ name: 'refund', description: 'Refunds', input: z.object({ amount: z.number() }) },
        run: ({ amount }) => {
          ran.push(amount)
          return `refunded ${amount}`
        },
      }),
      defineTool({ name: 'locate', description: 'Locates', input: z.object({}), where: 'client' }),
    ]
    const model = scriptedModel(({ messages }) => {
      responses += 1
      const isFirst = !messages.some(({ content }) => content.type === 'tool_response')
      if (!isFirst) return [say('Done.')]
      return [1, 2, 3, 5_000].map(amount => call('refund', { amount })).concat(call('locate', {}))
    })
    const { task, waits } = await asking('approves', async turn => {
      const approve = ({ tool, args }: { tool: string; args: Json }) => {
        if (tool === 'locate') return { ask: { hold: 0 } }
        const { amount } = args as { amount: number }
        return amount > 1_000 ? { deny: 'too much' } : amount === 1 ? 'allow' : { ask: { hold: 0 } }
      }
      await turn.run({ model, tools, approve })
    })
    expect(waits.map(({ kind, tool, arguments: args }) => [kind, tool, args])).toEqual([
      ['approval', 'refund', { amount: 2 }],
      ['approval', 'refund', { amount: 3 }],
      ['tool', 'locate', {}],
    ])
    await untilParked(task)
    const [edited, declined, located] = waits.map(({ id }) => id)
    const schema = { type: 'object', properties: { amount: { type: 'number' } }, required: ['amount'] }
    expect(waits.map(({ argumentsSchema }) => argumentsSchema)).toEqual([schema, schema, undefined])
    for (const content of [{ amount: '20' }, {}]) {
      const { status, body } = await answer(task, String(edited), { action: 'edit', content })
      expect([status, body.error.code, body.error.details]).toMatchObject([400, 'validation_failed', [{ path: '/content/amount' }]])
    }
    await answer(task, String(edited), { action: 'edit', content: { amount: 20 } })
    await answer(task, String(declined), { action: 'decline', comment: 'no' })
    await answer(task, String(located), { action: 'accept', content: 'here' })
    await platform.client.waitForEnd(task)
    const messages = await platform.client.messages(task)
    const results = messages.flatMap(({ content }) => (content.type === 'tool_response' ? [content.content] : []))
    expect(results).toEqual(['refunded 1', 'refunded 20', 'Declined: no', 'Not allowed: too much', 'here'])
    expect(ran.toSorted()).toEqual([1, 20])
    expect(responses).toBe(2)
    expect(await faultsOf(platform, task)).toEqual([])
  })
})

describe('misuse', () => {
  test.each<[string, string, (turn: Turn) => Promise<unknown>]>([
    ['a wait inside a step', 'bad_call', turn => turn.step('s', () => turn.ask('a', { title: 'A' }).then(() => {}))],
    ['two waits of one name', 'bad_call', turn => Promise.all([turn.sleep('a', { for: '1ms' }), turn.sleep('a', { for: '1ms' })])],
    [
      'a schema that no client can draw',
      'bad_call',
      turn => turn.ask('a', { title: 'A', schema: { type: 'object', properties: { b: { type: 'object' } } } }),
    ],
    ['no title', 'bad_call', turn => turn.ask('a', { title: '' })],
    ['no time', 'bad_call', turn => turn.ask('a', { title: 'A', expiresIn: 'soon' as never })],
    [
      'an open message',
      'bad_call',
      async turn => {
        turn.message()
        await turn.ask('a', { title: 'A', hold: 0 })
      },
    ],
    [
      '1,000 waits',
      'too_many_waits',
      turn => turn.askAll(Object.fromEntries(Array.from({ length: 1_000 }, (_, i) => [`w${i}`, { title: 'A' }]))),
    ],
    [
      'waits of a megabyte',
      'too_many_waits',
      turn => turn.askAll(Object.fromEntries(Array.from({ length: 60 }, (_, i) => [`w${i}`, { title: 'A', detail: 'x'.repeat(15_000) }]))),
    ],
    ['a wait that is not awaited', 'bad_call', async turn => void turn.ask('a', { title: 'A' }).catch(() => {})],
  ])('%s', async (_, code, handler) => {
    const agent = `misuse-${crypto.randomUUID().slice(0, 8)}`
    await startOwnWorker(platform, [defineAgent(agent, async turn => void (await handler(turn)))])
    const { turns } = await platform.client.finishedTask({ agent, maxAttempts: 1 })
    expect(turns).toMatchObject([{ status: 'failed', error: { code } }])
  })
})

/** A task whose turn has asked. */
async function asking(name: string, handler: (turn: Turn) => Promise<void>, options: object = {}, workerOptions: OwnWorkerOptions = {}) {
  const agent = `${name}-${crypto.randomUUID().slice(0, 8)}`
  await startOwnWorker(platform, [defineAgent(agent, handler)], workerOptions)
  const { task } = await platform.client.createTask({ agent, ...options })
  const viewer = watch(task.id, { urls: [platform.url] })
  const { turns } = await platform.client.waitForTask(task.id, ({ turns }) => turns.some(({ waits }) => waits?.length))
  const waits = turns.flatMap(turn => turn.waits ?? [])
  return { task: task.id, viewer, agent, waits, wait: waits[0] as Wait }
}

function untilParked(task: string) {
  return platform.client
    .waitForTask(task, ({ task: { status } }) => status === 'waiting')
    .then(async found => {
      const stored = () => platform.pg.query('select status from turns where task = $1 order by number', [task])
      await until('the turn has parked', async () => (await stored()).rows.at(-1)?.status === 'waiting')
      return found
    })
}

function answer(task: string, wait: string, body: object) {
  return platform.client.post<ErrorReply & { wait: Wait }>(`/v1/tasks/${task}/waits/${wait}/answer`, body)
}

async function textsOf(task: string): Promise<string[]> {
  const messages = await platform.client.messages(task)
  return messages.map(({ content }) => (content.type === 'text' ? content.text : content.type))
}

/** Of a task that has ended, once its end is announced. */
async function typesIn(task: string): Promise<Event['type'][]> {
  return until('the end is in the log', async () => {
    const types = (await platform.log(task)).map(({ event }) => event.type)
    return types.at(-1) === 'turn.finished' && types
  })
}

/** Each wait has one `turn.waiting` and at most one `turn.resumed` in the log, and a closed one has one. */
async function untilOpen(task: string, name: string): Promise<void> {
  await platform.client.waitForTask(task, ({ turns }) =>
    turns.some(({ waits }) => waits?.some(wait => wait.name === name && wait.status === 'open')),
  )
}

async function answerNext(task: string): Promise<void> {
  const { turns } = await platform.client.detail(task)
  const open = turns.flatMap(({ waits = [] }) => waits).find(({ status }) => status === 'open')
  expect((await answer(task, String(open?.id), { action: 'accept' })).status).toBe(200)
}
