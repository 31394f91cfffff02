/**
 * Spans, and the `traceparent` header that connects them across processes (W3C Trace Context).
 *
 * A span is a piece of work with a name and a duration. Without a collector, a span still forwards its trace, so that the next process joins
 * the same trace. No function here throws or waits.
 */
export type SpanAttributes = Record<string, string | number | boolean>

export type SpanKind = 'internal' | 'server' | 'client' | 'producer' | 'consumer'

export type SpanOptions = {
  /** Default `internal`. */
  kind?: SpanKind
  attributes?: SpanAttributes
}

export type SpanEnd = { failure?: { code: string } | undefined; attributes?: SpanAttributes }

export type Span = {
  /** The value of the header `traceparent` for calls to other processes. */
  readonly traceparent: string
  /** A span below this one. */
  start(name: string, options?: SpanOptions): Span
  /** Call it once. */
  end(how?: SpanEnd): void
}

export type Tracer = {
  /** A span below `parent`, the `traceparent` of another process. Without one, a new trace begins. */
  start(name: string, options?: SpanOptions & { parent?: string | null | undefined }): Span
}

/** For a process without a span collector. */
export const plainTracer: Tracer = { start: (_, { parent } = {}) => plainSpan(parent ?? newTraceparent()) }

export function plainSpan(traceparent: string): Span {
  const span: Span = { traceparent, start: () => span, end: () => {} }
  return span
}

/** The header unchanged, or null when it is not a valid header of version 00; the caller then starts a new trace. */
export function parseTraceparent(header: unknown): string | null {
  return typeof header === 'string' && /^00-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}$/.test(header) ? header : null
}

/** Starts a trace, marked as sampled, so that every process may record it. */
export function newTraceparent(): string {
  return `00-${randomHex(32)}-${randomHex(16)}-01`
}

export function traceIdOf(traceparent: string): string {
  return traceparent.slice(3, 35)
}

/** Unique enough for trace ids; not suitable for secrets. */
function randomHex(digits: number): string {
  const text = Array.from({ length: digits / 8 }, () =>
    Math.floor(Math.random() * 2 ** 32)
      .toString(16)
      .padStart(8, '0'),
  ).join('')
  return /[^0]/.test(text) ? text : randomHex(digits)
}
