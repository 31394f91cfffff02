/** A collector of OpenTelemetry spans (OTLP over HTTP, as JSON) on this machine, and the environment of a program that sends its spans there. */
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { json } from 'node:stream/consumers'
import { pathToFileURL } from 'node:url'
import { inject } from 'vitest'
import type { Environment } from '../support/process/typed-commands.ts'

type CollectedSpan = { name: string; traceId: string; spanId: string; parentSpanId?: string }

export type SpanCollector = {
  spans: CollectedSpan[]
  /** Loads the SDK of the consumer's folder. */
  environment: Environment
  close(): Promise<void>
}

type Export = { resourceSpans: { scopeSpans: { spans: CollectedSpan[] }[] }[] }

export async function startSpanCollector(): Promise<SpanCollector> {
  const spans: CollectedSpan[] = []
  const server = createServer(async (request, response) => {
    const { resourceSpans } = (await json(request)) as Export
    spans.push(...resourceSpans.flatMap(({ scopeSpans }) => scopeSpans.flatMap(scope => scope.spans)))
    response.end('{}')
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const environment = {
    NODE_OPTIONS: `--import ${pathToFileURL(join(inject('consumer'), 'tracing.mjs'))}`,
    OTEL_EXPORTER_OTLP_ENDPOINT: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
  }
  return { spans, environment, close }

  async function close(): Promise<void> {
    server.closeAllConnections()
    server.close()
    await once(server, 'close')
  }
}
