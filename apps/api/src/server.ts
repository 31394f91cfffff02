/** The HTTP surface: what every request goes through before it meets its route, and what every error looks like. */
import { randomUUID } from 'node:crypto'
import type { Socket } from 'node:net'
import swagger from '@fastify/swagger'
import swaggerUi from '@fastify/swagger-ui'
import { type ErrorCode, errorTable, RivuletError } from '@rivulet/protocol'
import fastify, { type ConnectionError, type FastifyBaseLogger, type FastifyInstance, LogController } from 'fastify'
import { jsonSchemaTransform } from 'fastify-type-provider-zod'
import type { z } from 'zod'
import { guardRoutes, isGuarded } from './access/guard.ts'
import { allowOrigins } from './cors.ts'
import { errorBody, handleErrors, notFound, sendError, toRivuletError, validate } from './http-errors.ts'
import { acceptJsonOnly } from './json-body.ts'
import { consoleRoutes } from './routes/console.ts'
import { createEventStream, eventRoutes } from './routes/events.ts'
import { internalRoutes } from './routes/internal.ts'
import { agentRoutes, metricsRoute, operationRoutes } from './routes/operations.ts'
import { taskRoutes } from './routes/tasks.ts'
import { tokenRoutes } from './routes/tokens.ts'
import type { Services } from './services.ts'

/** What one listener answers: what clients ask, what workers ask, or both. Health and metrics are everywhere. */
export type Audience = { clients: boolean; workers: boolean }

export async function createServer(services: Services, logger: FastifyBaseLogger, audience: Audience): Promise<FastifyInstance> {
  const { config } = services
  const app: FastifyInstance = fastify({
    loggerInstance: logger,
    logController: new LogController({ disableRequestLogging: true }),
    genReqId: () => randomUUID(),
    bodyLimit: services.limits.bodyBytes,
    requestTimeout: 10_000,
    connectionTimeout: 0,
    keepAliveTimeout: 5_000,
    forceCloseConnections: 'idle',
    http: { headersTimeout: 10_000, connectionsCheckingInterval: 1_000, maxHeaderSize: 16_384 },
    routerOptions: { ignoreTrailingSlash: false },
    frameworkErrors: (error, _request, reply) => sendError(reply, toRivuletError(error)),
    clientErrorHandler: answerBrokenRequest,
  })
  app.setValidatorCompiler<z.ZodType>(
    ({ schema }) =>
      value =>
        validate(schema, value),
  )
  // Answers are made of entities that are valid by construction; their schemas are there for the documentation.
  app.setSerializerCompiler(() => data => JSON.stringify(data))
  app.addHook('onRoute', function ({ method, url }) {
    if (!isGuarded(this) && !isForAnybody(url)) throw new Error(`${method} ${url} is neither guarded nor for anybody`)
  })
  if (audience.clients) allowOrigins(app, config.origins)
  acceptJsonOnly(app, services.limits)
  handleErrors(app)
  app.setNotFoundHandler(notFound)

  await app.register(swagger, {
    openapi: { openapi: '3.1.0', info: { title: 'Rivulet', version: '1', description: 'Agents as asynchronous workers, streamed live.' } },
    transform: jsonSchemaTransform,
  })
  operationRoutes(app, services)
  await app.register(async scope => {
    guardRoutes(scope, services.door, config.isOpen)
    metricsRoute(scope, services)
  })
  if (audience.clients) await serveClients()
  if (audience.workers) await app.register(serveWorkers, { prefix: '/internal' })
  return app

  async function serveClients(): Promise<void> {
    await app.register(swaggerUi, { routePrefix: '/docs' })
    app.get('/openapi.json', { schema: { hide: true } }, async () => app.swagger())
    const events = createEventStream(services)
    consoleRoutes(app)
    await app.register(
      async scope => {
        refuseUntilStarted(scope)
        guardRoutes(scope, services.door, config.isOpen)
        taskRoutes(scope, services, events)
        eventRoutes(scope, events)
        tokenRoutes(scope, services)
        agentRoutes(scope, services)
      },
      { prefix: '/v1' },
    )
  }

  async function serveWorkers(scope: FastifyInstance): Promise<void> {
    refuseUntilStarted(scope)
    guardRoutes(scope, services.door, config.isInternalOpen)
    internalRoutes(scope, services)
  }

  function refuseUntilStarted(scope: FastifyInstance): void {
    scope.addHook('onRequest', async () => {
      if (!services.hasStarted()) throw new RivuletError('dependency_unavailable', 'This process is starting')
    })
  }
}

/** What holds nothing of anybody's: health, the description of the API, and the files of the console. */
function isForAnybody(url: string): boolean {
  return /^\/(healthz|readyz|openapi\.json|docs(\/.*)?|tasks|tasks\/:id|agents|assets\/:name|favicon\.svg)?$/.test(url)
}

/** A request that Node could not even parse still gets the one shape of an error. */
function answerBrokenRequest(error: ConnectionError, socket: Socket): void {
  if (error.code === 'ECONNRESET' || !socket.writable) {
    socket.destroy()
    return
  }
  const code = parserCodes[error.code] ?? 'bad_request'
  const status = errorTable[code].status ?? 400
  const body = JSON.stringify(errorBody(code, new RivuletError(code, 'The request could not be read').message, randomUUID()))
  socket.end(
    `HTTP/1.1 ${status} ${code}\r\ncontent-type: application/json; charset=utf-8\r\ncontent-length: ${Buffer.byteLength(body)}\r\nconnection: close\r\n\r\n${body}`,
  )
}

const parserCodes: Record<string, keyof Pick<typeof errorTable, 'headers_too_large' | 'request_timeout'> & ErrorCode> = {
  HPE_HEADER_OVERFLOW: 'headers_too_large',
  ERR_HTTP_REQUEST_TIMEOUT: 'request_timeout',
}
