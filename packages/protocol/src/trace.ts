/**
 * Where in a trace something happens (W3C Trace Context), and the spans below it.
 *
 * A span is a piece of work with a name and the time that it took. Without anybody who collects spans they still hand on the trace that they
 * were given, so that whoever is called joins it. Nothing here fails, and nothing waits.
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
  /** For whoever is called from here: the value of the header of this name. */
  readonly traceparent: string
  /** A span below this one. */
  start(name: string, options?: SpanOptions): Span
  /** To be called once. */
  end(how?: SpanEnd): void
}

export type Tracer = {
  /** A span below the one that another process has told of, if it did. */
  start(name: string, options?: SpanOptions & { parent?: string | null | undefined }): Span
}

/** For when nobody collects spans. */
export const plainTracer: Tracer = { start: (_, { parent } = {}) => plainSpan(parent ?? newTraceparent()) }

export function plainSpan(traceparent: string): Span {
  const span: Span = { traceparent, start: () => span, end: () => {} }
  return span
}

/** The header as it came, or null for anything that is not exactly what version 00 allows: then a trace begins here. */
export function parseTraceparent(header: unknown): string | null {
  return typeof header === 'string' && /^00-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}$/.test(header) ? header : null
}

/** The beginning of a trace; whoever wants to record it may. */
export function newTraceparent(): string {
  return `00-${randomHex(32)}-${randomHex(16)}-01`
}

export function traceIdOf(traceparent: string): string {
  return traceparent.slice(3, 35)
}

/** Unique enough to tell traces apart, and no secret. */
function randomHex(digits: number): string {
  const text = Array.from({ length: digits / 8 }, () =>
    Math.floor(Math.random() * 2 ** 32)
      .toString(16)
      .padStart(8, '0'),
  ).join('')
  return /[^0]/.test(text) ? text : randomHex(digits)
}
