/**
 * Spans for OpenTelemetry, through the SDK that the process has loaded. Without one, spans only forward the trace, at almost no cost. When the SDK
 * throws, only its spans are lost.
 *
 * The SDK is found where its API registers it, under a global symbol, and not through an import of `@opentelemetry/api`, because that package ignores an
 * SDK whose API is older than itself. What is used here is the same in all 1.x versions. Contexts are passed as arguments, so no context manager is needed.
 */
import type {
  Context,
  ContextManager,
  Span as OpenSpan,
  SpanKind as OpenSpanKind,
  SpanContext,
  SpanStatusCode,
  TracerProvider,
} from '@opentelemetry/api'
import { newTraceparent, plainSpan, type Span, type SpanKind, type SpanOptions, type Tracer } from './trace.ts'

type Registered = { version: string; trace?: TracerProvider; context?: ContextManager }

const apiKey = Symbol.for('opentelemetry.js.api.1')
const spanKey = Symbol.for('OpenTelemetry Context Key SPAN')
/** The values of the API's own enums. */
const kinds: Record<SpanKind, OpenSpanKind> = { internal: 0, server: 1, client: 2, producer: 3, consumer: 4 }
const errorStatus: SpanStatusCode = 2

/** The version of the API of the SDK that this process has loaded; null without one. */
export function openTelemetryVersion(): string | null {
  const api = registered()
  return api?.trace ? api.version : null
}

/** For the log of a program that starts. */
export function describeTracing(): string {
  const version = openTelemetryVersion()
  return version
    ? `traces go to the OpenTelemetry SDK of this process (API ${version})`
    : 'traces are off: this process has no OpenTelemetry SDK'
}

export function openTelemetryTracer(): Tracer {
  return {
    start(name, { parent, ...options } = {}) {
      const traceparent = parent ?? newTraceparent()
      const plain = plainSpan(traceparent)
      const { trace: provider, context: manager } = registered() ?? {}
      if (!provider) return plain
      return safely(() => open(provider, name, options, parentContext(manager, parent, options.kind), traceparent), plain)
    },
  }

  /** When another instrumentation already traces this process's requests, our spans are below its span. */
  function parentContext(manager: ContextManager | undefined, parent: string | null | undefined, kind: SpanKind | undefined): Context {
    const active = manager?.active()
    if (kind === 'server' && active?.getValue(spanKey)) return active
    return parent ? remoteContext(parent) : createContext()
  }

  function open(
    provider: TracerProvider,
    name: string,
    { kind = 'internal', attributes = {} }: SpanOptions,
    parent: Context,
    given: string,
  ): Span {
    const span = provider.getTracer('rivulet').startSpan(name, { kind: kinds[kind], attributes }, parent)
    const { traceId, spanId, traceFlags } = span.spanContext()
    // Without an SDK, a span without a parent has no ids either.
    const isValid = /[^0]/.test(traceId) && /[^0]/.test(spanId)
    const flags = traceFlags.toString(16).padStart(2, '0')
    const traceparent = isValid ? `00-${traceId}-${spanId}-${flags}` : given
    const here = isValid ? withSpan(parent, span) : remoteContext(given)
    return {
      traceparent,
      start: (below, options = {}) => safely(() => open(provider, below, options, here, traceparent), plainSpan(traceparent)),
      end: ({ failure, attributes: learned } = {}) =>
        safely(() => {
          if (learned) span.setAttributes(learned)
          if (failure) span.setAttribute('error.type', failure.code).setStatus({ code: errorStatus, message: failure.code })
          span.end()
        }, undefined),
    }
  }
}

/** A span of another process. */
function remoteContext(traceparent: string): Context {
  const [, traceId = '', spanId = '', flags = ''] = traceparent.split('-')
  const remote: SpanContext = { traceId, spanId, traceFlags: Number.parseInt(flags, 16), isRemote: true }
  return withSpan(createContext(), { spanContext: () => remote, isRecording: () => false })
}

function withSpan(context: Context, span: Pick<OpenSpan, 'spanContext' | 'isRecording'>): Context {
  return context.setValue(spanKey, span)
}

/** As OpenTelemetry defines a context: immutable values by symbol. */
function createContext(values: ReadonlyMap<symbol, unknown> = new Map()): Context {
  return {
    getValue: key => values.get(key),
    setValue: (key, value) => createContext(new Map(values).set(key, value)),
    deleteValue: key => createContext(new Map([...values].filter(([known]) => known !== key))),
  }
}

function registered(): Registered | null {
  return (globalThis as { [apiKey]?: Registered })[apiKey] ?? null
}

function safely<T>(work: () => T, otherwise: T): T {
  try {
    return work()
  } catch {
    return otherwise
  }
}
