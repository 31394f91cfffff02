/**
 * Loaded into a process before its program (`--import`): collects spans through OpenTelemetry's own API, as an SDK would, and writes each as a
 * line of the process's output when it ends.
 */
import { randomBytes } from 'node:crypto'
import { trace } from '@opentelemetry/api'

trace.setGlobalTracerProvider({ getTracer: () => ({ startSpan }) })

function startSpan(name, { kind, attributes } = {}, context) {
  const parent = context && trace.getSpanContext(context)
  const own = { traceId: parent?.traceId ?? hex(16), spanId: hex(8), traceFlags: 1 }
  const said = {
    level: 10,
    msg: 'span',
    name,
    kind,
    traceId: own.traceId,
    spanId: own.spanId,
    parent: parent?.spanId,
    attributes: { ...attributes },
  }
  const startedAt = performance.now()
  const span = {
    spanContext: () => own,
    isRecording: () => true,
    setAttribute: (key, value) => note({ [key]: value }),
    setAttributes: note,
    setStatus(status) {
      said.status = status
      return span
    },
    end: () => process.stdout.write(`${JSON.stringify({ ...said, ms: performance.now() - startedAt })}\n`),
  }
  return span

  function note(more) {
    Object.assign(said.attributes, more)
    return span
  }
}

function hex(bytes) {
  return randomBytes(bytes).toString('hex')
}
