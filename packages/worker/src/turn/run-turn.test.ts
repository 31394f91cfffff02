/** One turn against a server and a log that accept everything: how handlers end, and what is reported of those that fail. */
import { setTimeout as sleep } from 'node:timers/promises'
import type { Append } from '@rivulet/broker'
import type { Claim, FinishBody, StepBody } from '@rivulet/contract/internal'
import { defaultLimits, delta, type Event, text } from '@rivulet/protocol'
import { describe, expect, onTestFinished, test } from 'vitest'
import { type AgentHandler, defineAgent } from '../define-agent.ts'
import type { Lease } from '../lease-thread.ts'
import type { Logger } from '../logger.ts'
import type { MessageHandle } from '../writer/message-handle.ts'
import { type RunTurnDeps, runTurn } from './run-turn.ts'
import type { RunningTurn } from './running-turn.ts'

const task = '01890000-0000-7000-8000-000000000000'
const noLease: Lease = { moveTo() {}, leave() {}, noteOpen() {}, drop() {} }

describe('a handler', () => {
  test('that has not awaited what it wrote has said it all the same', async () => {
    const { outcome, events } = await run(async turn => {
      const message = turn.message(text('a'))
      void message.append('b')
      void message.append('c')
      void turn.send('d')
    })
    expect(outcome).toMatchObject({ status: 'completed' })
    expect(events.map(({ type }) => type)).toEqual(['message.started', 'message.delta', 'message.replaced', 'message.finished'])
    expect(events[1]).toMatchObject({ delta: { text: 'bc' } })
  })

  test.each<[string, AgentHandler]>([
    ['turn.autoSend', async turn => void turn.autoSend(endless())],
    ['turn.message', async turn => void turn.message(text('half'), never)],
    ['turn.step "s"', async turn => void turn.step('s', never)],
    [
      'turn.autoSend',
      async function* (turn) {
        yield delta(0, 'first')
        void turn.autoSend(endless())
      },
    ],
  ])('that returns while its %s goes on fails, instead of cutting it', async (what, handler) => {
    const { outcome } = await run(handler)
    expect(outcome).toMatchObject({
      status: 'failed',
      error: { code: 'bad_call', message: `The handler ended before its ${what} ended: await it` },
    })
  })

  test.each<[string, () => unknown]>([
    ['text', async () => 'the answer'],
    ['a stream', async () => endless()],
    ['the updates of a generator that is not asynchronous', () => [delta(0, 'a')].values()],
  ])('that returns %s fails, because the value would be lost', async (_, handler) => {
    const { outcome, events } = await run(handler as AgentHandler)
    expect(outcome).toMatchObject({ status: 'failed', error: { code: 'bad_call', message: expect.stringContaining('returns nothing') } })
    expect(events).toEqual([])
  })

  test('that yields what is no update fails, with what it said before', async () => {
    const { outcome, events } = await run(async function* () {
      yield delta(0, 'a')
      yield 'b' as never
    })
    expect(outcome).toMatchObject({ status: 'failed', error: { code: 'bad_event' } })
    expect(events.at(-1)).toMatchObject({ type: 'message.finished', status: 'failed' })
  })

  test.each<[string, unknown]>([
    ['an object without a text', Object.create(null)],
    ['nothing', undefined],
    ['an error without a message', Object.assign(new Error(), { message: null })],
  ])('that throws %s fails like any other', async (_, thrown) => {
    const { outcome } = await run(() => Promise.reject(thrown))
    expect(outcome).toMatchObject({ status: 'failed', error: { code: 'agent_error', message: expect.any(String) } })
  })

  test('may hand its signal to any number of waits, and learns from it why it ended', async () => {
    const warnings: Error[] = []
    const onWarning = (warning: Error) => warnings.push(warning)
    process.on('warning', onWarning)
    onTestFinished(() => void process.off('warning', onWarning))
    let reason: unknown
    const { outcome } = await run(
      async turn => {
        const waits = Array.from({ length: 30 }, () => sleep(60_000, undefined, { signal: turn.signal }))
        const ended = Promise.allSettled(waits)
        await turn.step('a', () => 1).catch(() => {})
        await ended
        reason = turn.signal.reason
      },
      { step: async () => ({ result: 'superseded', isOverBudget: false }) },
    )
    // Warnings come with the next tick.
    await new Promise(setImmediate)
    expect(outcome).toBeNull()
    expect(reason).toMatchObject({ name: 'AbortError', cause: { code: 'turn_over' } })
    expect(warnings).toEqual([])
  })

  test('that has ended is finished, also where its worker stops before its last word is in the log', async () => {
    let running: RunningTurn | undefined
    let takeIt = () => {}
    const isTaken = new Promise<void>(resolve => (takeIt = resolve))
    const ended = run(async turn => void (await Promise.all([turn.send('on its way'), turn.send('still here')])), {
      hold: turn => {
        running = turn
        return noLease
      },
      beforeAppend: () => isTaken,
    })
    await new Promise(setImmediate)
    running?.release()
    takeIt()
    expect(await ended).toMatchObject({ outcome: { status: 'completed' }, appended: 2, released: false })
  })

  test('that has completed is not aborted when a heartbeat finds its turn ended before the response to its finish is there', async () => {
    let running: RunningTurn | undefined
    const ended = await run(async turn => void (await turn.send('all')), {
      hold: turn => {
        running = turn
        return noLease
      },
      onFinish: () => running?.lose(),
    })
    expect(ended).toMatchObject({ outcome: { status: 'completed' }, appended: 1, aborted: false })
  })

  test('is held to the limits that its claim tells, and hears the name of the one that it met', async () => {
    const limits = { ...defaultLimits, deltaBytes: 4, turnBytes: 10 }
    const { outcome, events } = await run(
      async function* () {
        yield delta(0, 'abcdef')
        yield delta(0, 'ghijkl')
      },
      { limits },
    )
    expect(outcome).toMatchObject({
      status: 'failed',
      error: { code: 'output_too_large', message: expect.stringMatching('MAX_TURN_BYTES.*10') },
    })
    expect(events.flatMap(event => (event.type === 'message.delta' && 'text' in event.delta ? event.delta.text : []))).toEqual([
      'abcd',
      'ef',
    ])
  })

  test('can do nothing with a handle that it kept from an earlier turn', async () => {
    let kept: MessageHandle | undefined
    await run(async turn => {
      kept = turn.message(text('a'))
    })
    const { outcome } = await run(async () => kept?.append('b'))
    expect(outcome).toMatchObject({ status: 'failed', error: { code: 'turn_over' } })
    expect(kept?.current()).toMatchObject({ status: 'complete', content: text('a') })
  })
})

describe('a step', () => {
  test('is remembered under the claim before the handler goes on', async () => {
    const asked: string[] = []
    const { outcome, steps } = await run(
      async turn => {
        asked.push(`before ${await turn.step('a', () => 1)}`, `after ${await turn.step('b', () => 2)}`)
      },
      {
        step: async ({ name }) => {
          asked.push(name)
          return { result: 'remembered', isOverBudget: false }
        },
      },
    )
    expect(asked).toEqual(['a', 'b', 'before 1', 'after 2'])
    expect(steps).toMatchObject([
      { turnId: task, claimId: 'claim', name: 'a', memory: '{"result":1,"messages":[]}' },
      { name: 'b', memory: '{"result":2,"messages":[]}' },
    ])
    expect(outcome).toMatchObject({ status: 'completed' })
  })

  test('that the server does not store, because another worker has the turn, ends the handler: the turn is lost, and not finished', async () => {
    let wentOn = false
    const { outcome, aborted } = await run(
      async turn => {
        await turn.step('a', () => 1)
        wentOn = true
      },
      { step: async () => ({ result: 'superseded', isOverBudget: false }) },
    )
    expect([outcome, aborted, wentOn]).toEqual([null, true, false])
  })

  test('that the server has no room for fails the turn', async () => {
    const { outcome } = await run(async turn => turn.step('a', () => {}), {
      step: async () => ({ result: 'too_large', isOverBudget: false }),
    })
    expect(outcome).toMatchObject({ status: 'failed', error: { code: 'step_too_large' } })
  })
})

type Run = {
  outcome: FinishBody['outcome'] | null
  events: Event[]
  steps: StepBody[]
  aborted: boolean
  released: boolean
  appended: number
}

type Around = Partial<
  Pick<RunTurnDeps['server'], 'step'> &
    Pick<RunTurnDeps, 'hold'> &
    Pick<Claim, 'limits'> & { beforeAppend: () => Promise<void>; onFinish: () => void }
>

async function run(
  handler: AgentHandler,
  {
    step = async () => ({ result: 'remembered', isOverBudget: false }),
    hold = () => noLease,
    beforeAppend = async () => {},
    onFinish = () => {},
    limits = defaultLimits,
  }: Around = {},
): Promise<Run> {
  const seen: Run = { outcome: null, events: [], steps: [], aborted: false, released: false, appended: 0 }
  const claim = {
    ...{
      result: 'claimed',
      epoch: 2,
      attempt: 1,
      firstIndex: 0,
      input: null,
      isolated: false,
      steps: [],
      kept: [],
      limits,
      timeLeftMs: 60_000,
    },
    ...{ task: { id: task, params: null }, turn: { number: 1 } },
  } as unknown as Claim
  const server: Partial<RunTurnDeps['server']> = {
    claim: async () => claim,
    step: async (body, signal) => {
      seen.steps.push(body)
      return step(body, signal)
    },
    release: async () => {
      seen.released = true
    },
    finish: async body => {
      seen.outcome = body.outcome
      seen.appended = body.n
      onFinish()
      return 'committed'
    },
  }
  const append = async ({ entries }: Append) => {
    await beforeAppend()
    seen.events.push(...entries.map(({ json }) => JSON.parse(json)))
    return 'ok' as const
  }
  const agent = defineAgent('tested', turn => {
    turn.signal.addEventListener('abort', () => (seen.aborted = true))
    return handler(turn)
  })
  const deps = {
    worker: 'w',
    appender: { append },
    log: silent,
    hold,
    hasFreeSlot: () => true,
    onFenced() {},
    leaving: new AbortController().signal,
  }
  await runTurn(agent, task, { ...deps, server: server as RunTurnDeps['server'] }, 'claim')
  return seen
}

async function* endless() {
  yield delta(0, 'half')
  await never()
}

function never(): Promise<never> {
  return new Promise(() => {})
}

const silent: Logger = { debug() {}, info() {}, warn() {}, error() {}, child: () => silent }
