/** What an attempt reports: to its observer, and in its log lines. */
import type { Claim } from '@rivulet/contract/internal'
import { plainTracer, type Tracer, traceIdOf } from '@rivulet/runtime/trace'
import { expect, test } from 'vitest'
import type { Logger } from '../logger.ts'
import type { EndedCall, TurnEnd, WorkerObserver } from '../worker-observer.ts'
import { openTurnAccount } from './turn-account.ts'

const traceparent = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01'

test('spans distinguish a model from a tool, and their times are summed when the attempt ends', () => {
  const { account, calls, ends, lines } = open()
  const model = account.span.start('chat m', { attributes: { 'gen_ai.operation.name': 'chat', 'gen_ai.request.model': 'm' } })
  const inner = model.start('something of theirs')
  inner.end()
  wait(20)
  model.end()
  const tool = account.span.start('execute_tool t', { attributes: { 'gen_ai.operation.name': 'execute_tool', 'gen_ai.tool.name': 't' } })
  wait(10)
  tool.end({ failure: { code: 'tool_failed' } })
  account.end('completed', { result: 'committed' })
  expect(calls).toMatchObject([
    { call: 'model', name: 'm', isError: false },
    { call: 'tool', name: 't', isError: true },
  ])
  const [modelMs = 0, toolMs = 0] = calls.map(({ ms }) => ms)
  expect(modelMs).toBeGreaterThanOrEqual(20)
  expect(toolMs).toBeGreaterThanOrEqual(10)
  expect(ends).toEqual(['completed'])
  expect(lines.at(-1)).toMatchObject({ msg: 'attempt ended', end: 'completed', modelMs, toolMs, result: 'committed' })
})

test('its span says why it failed', () => {
  const ended: unknown[] = []
  const { account } = open({}, {}, { start: (...args) => ({ ...plainTracer.start(...args), end: how => void ended.push(how) }) })
  account.end('failed', {}, { code: 'deadline_exceeded', message: 'The turn exceeded its deadline' })
  expect(ended).toEqual([{ attributes: { 'rivulet.end': 'failed' }, failure: { code: 'deadline_exceeded' } }])
})

test('its first delta is reported with the time since it was queued, if the server sent that', () => {
  const { account, firsts } = open({ waitedMs: 40_000 })
  account.spoke()
  expect(firsts).toEqual([{ startedMs: expect.any(Number), queuedMs: expect.any(Number) }])
  expect(firsts[0]?.queuedMs).toBeGreaterThanOrEqual(40_000)
  const old = open({ waitedMs: undefined })
  old.account.spoke()
  expect(old.firsts[0]?.queuedMs).toBeNull()
})

test('every line names task, turn, attempt and trace', () => {
  const { account, lines } = open()
  account.log.info({}, 'from the handler')
  account.end('lost')
  const about = { task: 'a task', turn: 3, attempt: 2, traceId: traceIdOf(traceparent) }
  expect(lines).toMatchObject(['turn started', 'from the handler', 'attempt ended'].map(msg => ({ msg, ...about })))
})

test('a turn of before there were traces begins one', () => {
  const { account, lines } = open({ traceparent: undefined })
  account.end('released')
  expect(lines[0]).toMatchObject({ traceId: traceIdOf(account.span.traceparent) })
})

test('an observer that throws fails nothing', () => {
  const { account } = open({}, {
    turnStarted: fail,
    firstDelta: fail,
    callEnded: fail,
    turnEnded: fail,
  } as WorkerObserver)
  account.spoke()
  account.span.start('chat', { attributes: { 'gen_ai.operation.name': 'chat' } }).end()
  account.end('completed')
})

function open(claimed: Partial<Claim> = {}, observer?: WorkerObserver, tracer: Tracer = plainTracer) {
  const calls: EndedCall[] = []
  const ends: TurnEnd[] = []
  const firsts: { queuedMs: number | null; startedMs: number }[] = []
  const lines: object[] = []
  const counting: WorkerObserver = {
    callEnded: (_, call) => calls.push(call),
    turnEnded: (_, how) => ends.push(how),
    firstDelta: (_, since) => firsts.push(since),
  }
  const claim = { task: { id: 'a task' }, turn: { number: 3 }, attempt: 2, traceparent, waitedMs: 5, ...claimed } as unknown as Claim
  const account = openTurnAccount({ agent: 'tested', claim, log: noting(lines), tracer, observer: observer ?? counting })
  return { account, calls, ends, firsts, lines }
}

function noting(lines: object[], bound: object = {}): Logger {
  const note = (fields: object, msg?: string) => void lines.push({ ...bound, ...fields, msg })
  return { debug: note, info: note, warn: note, error: note, child: fields => noting(lines, { ...bound, ...fields }) }
}

/** Without yielding, so the measured time is at least this. */
function wait(ms: number): void {
  const until = performance.now() + ms + 1
  while (performance.now() < until);
}

function fail(): never {
  throw new Error('The registry is gone')
}
