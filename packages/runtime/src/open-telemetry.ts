/**
 * Spans for OpenTelemetry. It uses only the OpenTelemetry API; the SDK of the process collects the spans. Without an SDK, spans only forward
 * the trace, at almost no cost. When the SDK throws, only its spans are lost.
 *
 * Contexts are passed as arguments, so no context manager is needed.
 */
import type * as OpenTelemetry from '@opentelemetry/api'
import { newTraceparent, plainSpan, type Span, type SpanKind, type SpanOptions, type Tracer } from './trace.ts'

type Context = OpenTelemetry.Context

/** The values of the API's own enums. */
const kinds: Record<SpanKind, OpenTelemetry.SpanKind> = { internal: 0, server: 1, client: 2, producer: 3, consumer: 4 }
const errorStatus: OpenTelemetry.SpanStatusCode = 2

export function openTelemetryTracer({ trace, context, ROOT_CONTEXT }: typeof OpenTelemetry): Tracer {
  return {
    start(name, { parent, ...options } = {}) {
      const traceparent = parent ?? newTraceparent()
      return safely(() => open(name, options, parentContext(parent, options.kind), traceparent), plainSpan(traceparent))
    },
  }

  /** When another instrumentation already traces this process's requests, our spans are below its span. */
  function parentContext(parent: string | null | undefined, kind: SpanKind | undefined): Context {
    const active = context.active()
    if (kind === 'server' && trace.getSpan(active)) return active
    return parent ? remoteContext(parent) : ROOT_CONTEXT
  }

  function remoteContext(traceparent: string): Context {
    const [, traceId = '', spanId = '', flags = ''] = traceparent.split('-')
    return trace.setSpanContext(ROOT_CONTEXT, { traceId, spanId, traceFlags: Number.parseInt(flags, 16), isRemote: true })
  }

  function open(name: string, { kind = 'internal', attributes = {} }: SpanOptions, parent: Context, given: string): Span {
    const span = trace.getTracer('rivulet').startSpan(name, { kind: kinds[kind], attributes }, parent)
    const { traceId, spanId, traceFlags } = span.spanContext()
    // Without an SDK, a span without a parent has no ids either.
    const isValid = /[^0]/.test(traceId) && /[^0]/.test(spanId)
    const flags = traceFlags.toString(16).padStart(2, '0')
    const traceparent = isValid ? `00-${traceId}-${spanId}-${flags}` : given
    const here = isValid ? trace.setSpan(parent, span) : remoteContext(given)
    return {
      traceparent,
      start: (below, options = {}) => safely(() => open(below, options, here, traceparent), plainSpan(traceparent)),
      end: ({ failure, attributes: learned } = {}) =>
        safely(() => {
          if (learned) span.setAttributes(learned)
          if (failure) span.setAttribute('error.type', failure.code).setStatus({ code: errorStatus, message: failure.code })
          span.end()
        }, undefined),
    }
  }
}

function safely<T>(work: () => T, otherwise: T): T {
  try {
    return work()
  } catch {
    return otherwise
  }
}
