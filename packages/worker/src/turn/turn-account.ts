/**
 * The account of one attempt: its span, the time of its first delta, the time it waited for models and tools, and how it ended.
 *
 * Calls are recognised by their spans: every span below the turn's with OpenTelemetry's names for models and tools counts as a call. An error of
 * an observer is ignored.
 */
import type { Claim } from '@rivulet/contract/internal'
import type { Failure } from '@rivulet/protocol'
import { plainTracer, type Span, type SpanAttributes, type Tracer, traceIdOf } from '@rivulet/runtime/trace'
import type { Logger } from '../logger.ts'
import type { EndedCall, TurnEnd, WorkerObserver } from '../worker-observer.ts'

export type TurnAccount = {
  /** For everything that is done in the turn. */
  span: Span
  log: Logger
  spoke(): void
  /** With what else is to be said about it, and why it failed. */
  end(how: TurnEnd, fields?: object, failure?: Failure): void
}

type TurnAccountDeps = {
  agent: string
  claim: Claim
  log: Logger
  tracer?: Tracer | undefined
  observer?: WorkerObserver | undefined
}

export function openTurnAccount({ agent, claim, log: parent, tracer = plainTracer, observer = {} }: TurnAccountDeps): TurnAccount {
  const startedAt = performance.now()
  const { task, turn, attempt, traceparent, waitedMs } = claim
  const attributes = { 'rivulet.task': task.id, 'rivulet.turn': turn.number, 'rivulet.attempt': attempt, 'rivulet.agent': agent }
  const span = tracer.start(`turn ${agent}`, {
    kind: 'consumer',
    parent: traceparent,
    attributes: { ...attributes, ...(waitedMs !== undefined && { 'rivulet.waited_ms': waitedMs }) },
  })
  const log = parent.child({ task: task.id, turn: turn.number, attempt, traceId: traceIdOf(span.traceparent) })
  const spent = { model: 0, tool: 0 }
  let firstDeltaMs: number | null = null
  log.debug({ agent, waitedMs }, 'turn started')
  tell(() => observer.turnStarted?.(agent))
  return { span: observed(span, null), log, spoke, end }

  function spoke(): void {
    const startedMs = sinceStart()
    firstDeltaMs = startedMs
    tell(() => observer.firstDelta?.(agent, { startedMs, queuedMs: waitedMs === undefined ? null : waitedMs + startedMs }))
  }

  function end(how: TurnEnd, fields: object = {}, failure?: Failure): void {
    const ranMs = sinceStart()
    span.end({ attributes: { 'rivulet.end': how }, ...(failure && { failure: { code: failure.code } }) })
    tell(() => observer.turnEnded?.(agent, how, ranMs))
    const waits = { ...(spent.model > 0 && { modelMs: spent.model }), ...(spent.tool > 0 && { toolMs: spent.tool }) }
    const times = { ranMs, ...(firstDeltaMs !== null && { firstDeltaMs }), ...waits }
    log.info({ agent, end: how, ...times, ...fields }, 'attempt ended')
  }

  function observed(inner: Span, call: (Pick<EndedCall, 'call' | 'name'> & { from: number }) | null): Span {
    return {
      traceparent: inner.traceparent,
      start: (name, options) => observed(inner.start(name, options), callOf(options?.attributes)),
      end(how) {
        inner.end(how)
        if (call)
          note({ call: call.call, name: call.name, ms: Math.round(performance.now() - call.from), isError: how?.failure !== undefined })
      },
    }
  }

  function note(ended: EndedCall): void {
    spent[ended.call] += ended.ms
    log.debug(ended, 'call ended')
    tell(() => observer.callEnded?.(agent, ended))
  }

  function sinceStart(): number {
    return Math.round(performance.now() - startedAt)
  }
}

function callOf(attributes: SpanAttributes = {}) {
  const { 'gen_ai.operation.name': operation, 'gen_ai.request.model': model, 'gen_ai.tool.name': tool } = attributes
  const from = performance.now()
  if (operation === 'chat') return { call: 'model' as const, name: String(model ?? ''), from }
  return operation === 'execute_tool' ? { call: 'tool' as const, name: String(tool ?? ''), from } : null
}

function tell(what: () => void): void {
  try {
    what()
  } catch {
    // An observer must not be able to fail a turn.
  }
}
