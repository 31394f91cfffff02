/** Spans through OpenTelemetry's own API: with an SDK, without one, and with one that fails. */
import * as openTelemetry from '@opentelemetry/api'
import { afterEach, expect, test } from 'vitest'
import { openTelemetryTracer, openTelemetryVersion } from './open-telemetry.ts'
import { parseTraceparent, traceIdOf } from './trace.ts'

const { context, trace, ROOT_CONTEXT } = openTelemetry
const tracer = openTelemetryTracer()
const given = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01'

afterEach(() => {
  trace.disable()
  context.disable()
})

test('without an SDK a span forwards the given trace, or starts one', () => {
  expect(tracer.start('a', { parent: given }).start('b').traceparent).toBe(given)
  const begun = tracer.start('a')
  expect(parseTraceparent(begun.traceparent)).not.toBeNull()
  expect(begun.start('b').traceparent).toBe(begun.traceparent)
})

test('an SDK of another 1.x API is found, and its version is named', () => {
  expect(openTelemetryVersion()).toBeNull()
  const ended = collect()
  const key = Symbol.for('opentelemetry.js.api.1')
  const registry = globalThis as { [key: symbol]: object }
  const registered = registry[key] ?? {}
  try {
    registry[key] = { ...registered, version: '1.4.0' }
    expect(openTelemetryVersion()).toBe('1.4.0')
    tracer.start('a', { parent: given }).end()
    expect(ended).toMatchObject([{ name: 'a', parent: 'b7ad6b7169203331' }])
  } finally {
    registry[key] = registered
  }
})

test('with an SDK every span has its parent, kind, attributes and status', () => {
  const ended = collect()
  const request = tracer.start('request', { kind: 'server', parent: given, attributes: { route: '/' } })
  const call = request.start('call', { kind: 'client' })
  call.end({ failure: { code: 'agent_error' }, attributes: { tokens: 3 } })
  request.end()
  expect(ended).toMatchObject([
    { name: 'call', kind: openTelemetry.SpanKind.CLIENT, parent: '1', attributes: { tokens: 3, 'error.type': 'agent_error' } },
    { name: 'request', kind: openTelemetry.SpanKind.SERVER, parent: 'b7ad6b7169203331', attributes: { route: '/' }, status: null },
  ])
  expect(ended[0]?.status).toEqual({ code: openTelemetry.SpanStatusCode.ERROR, message: 'agent_error' })
  expect([request, call].map(({ traceparent }) => traceIdOf(traceparent))).toEqual([traceIdOf(given), traceIdOf(given)])
})

test('a request that another instrumentation traces is below its span, whatever the header contains', () => {
  const ended = collect()
  const theirs = trace.getTracer('theirs').startSpan('theirs', {}, ROOT_CONTEXT)
  const active = trace.setSpan(ROOT_CONTEXT, theirs)
  context.setGlobalContextManager({ ...manager, active: () => active })
  tracer.start('request', { kind: 'server', parent: given }).end()
  tracer.start('turn', { kind: 'consumer', parent: given }).end()
  expect(ended).toMatchObject([
    { name: 'request', parent: theirs.spanContext().spanId },
    { name: 'turn', parent: 'b7ad6b7169203331' },
  ])
})

test.each(['startSpan', 'spanContext', 'setAttributes', 'end'])(
  'an SDK that throws in %s fails no call, and the trace continues',
  broken => {
    collect(broken)
    const span = tracer.start('a', { parent: given })
    const below = span.start('b')
    below.end({ attributes: { a: 1 } })
    span.end({ failure: { code: 'internal' }, attributes: { a: 1 } })
    expect(traceIdOf(below.traceparent)).toBe(traceIdOf(given))
  },
)

type Ended = { name: string; kind: number | undefined; parent: string | undefined; attributes: object; status: object | null }

/** A minimal SDK, with one method that fails. */
function collect(broken = ''): Ended[] {
  const ended: Ended[] = []
  let spans = 0
  const failing = (method: string) => {
    if (method === broken) throw new Error('The collector is unavailable')
  }
  const startSpan: openTelemetry.Tracer['startSpan'] = (name, { kind, attributes = {} } = {}, parentContext = ROOT_CONTEXT) => {
    failing('startSpan')
    const parent = trace.getSpanContext(parentContext)
    const own = { traceId: parent?.traceId ?? 'f'.repeat(32), spanId: String(++spans), traceFlags: 1 }
    const recorded: Ended = { name, kind, parent: parent?.spanId, attributes: { ...attributes }, status: null }
    const span = {
      spanContext() {
        failing('spanContext')
        return own
      },
      setAttribute: (key: string, value: unknown) => note({ [key]: value }),
      setAttributes(more: object) {
        failing('setAttributes')
        return note(more)
      },
      setStatus(status: object) {
        recorded.status = status
        return span
      },
      end() {
        failing('end')
        ended.push(recorded)
      },
    } as unknown as openTelemetry.Span
    const note = (more: object) => {
      Object.assign(recorded.attributes, more)
      return span
    }
    return span
  }
  trace.setGlobalTracerProvider({ getTracer: () => ({ startSpan, startActiveSpan: () => undefined as never }) })
  return ended
}

const manager: openTelemetry.ContextManager = {
  active: () => ROOT_CONTEXT,
  with: (_, work, self, ...args) => work.call(self as ThisParameterType<typeof work>, ...args),
  bind: (_, target) => target,
  enable: () => manager,
  disable: () => manager,
}
