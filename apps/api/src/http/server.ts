/** The HTTP server: the hooks that every request passes before its route, the routes, and the shape of every error. */
import { randomUUID } from 'node:crypto'
import https from 'node:https'
import swagger from '@fastify/swagger'
import { headLimits, RivuletError } from '@rivulet/protocol'
import fastify, { type FastifyBaseLogger, type FastifyInstance, type FastifyServerOptions, LogController } from 'fastify'
import type { z } from 'zod'
import { checkHosts } from '../access/allowed-hosts.ts'
import { rejectForeignPages } from '../access/foreign-pages.ts'
import { guardRoutes, isGuarded } from '../access/guard.ts'
import { limitConnections } from './connections.ts'
import { rejectWhenClosing, servesWhileClosing } from './draining.ts'
import { handleErrors, notFound, sendError, toRivuletError, validate } from './errors.ts'
import { countRequests } from './http-metrics.ts'
import { openApiOptions } from './openapi.ts'
import { rejectFrames } from './page-headers.ts'
import type { Protocols } from './protocol.ts'
import { allowOrigins } from './requests/cors.ts'
import { checkFileReferences } from './requests/files/file-references.ts'
import { acceptJsonOnly } from './requests/json-body.ts'
import { recordRefusals } from './requests/record-refusals.ts'
import { checkHeads, rejectBrokenRequest } from './requests/request-head.ts'
import { hideContents } from './requests/visible-body.ts'
import { auditRoutes } from './routes/audit.ts'
import { type ConsolePage, consolePages, consoleRoutes, wantsPage } from './routes/console.ts'
import { docsRoutes } from './routes/docs.ts'
import { feedRoutes } from './routes/feed.ts'
import { fileRoutes } from './routes/files.ts'
import { createWorkerCalls, internalRoutes } from './routes/internal/internal.ts'
import { keyRoutes } from './routes/keys.ts'
import { limitRoutes } from './routes/limits.ts'
import { manyEventRoutes } from './routes/many-events.ts'
import { agentRoutes, metricsRoute, operationRoutes } from './routes/operations.ts'
import { scheduleRoutes } from './routes/schedules.ts'
import { storeRoutes } from './routes/store.ts'
import { createTaskRoute } from './routes/tasks/create-task.ts'
import { createEventStream, eventRoutes } from './routes/tasks/events.ts'
import { messageEventRoutes } from './routes/tasks/message-events.ts'
import { messageRoutes } from './routes/tasks/messages.ts'
import { stateRoutes } from './routes/tasks/state.ts'
import { taskChangeRoutes } from './routes/tasks/task-changes.ts'
import { taskRoutes } from './routes/tasks/tasks.ts'
import { tokenRoutes } from './routes/tasks/tokens.ts'
import { turnHistoryRoutes } from './routes/tasks/turn-history.ts'
import { turnRoutes } from './routes/tasks/turns.ts'
import { waitRoutes } from './routes/tasks/waits.ts'
import { usageRoutes } from './routes/usage.ts'
import { webhookRoutes } from './routes/webhooks.ts'
import { whoamiRoute } from './routes/whoami.ts'
import { describeWorkerProtocol, workerRoutes } from './routes/worker/worker.ts'
import type { Services } from './services.ts'

/** The routes of one listener: those of clients, those of workers, or both. Every listener serves health and metrics. */
type Audience = { clients: boolean; workers: boolean; tls?: { cert: string; key: string } | null }

const connectionOptions = { requestTimeout: headLimits.requestMs, keepAliveTimeout: 5_000 }
const httpOptions = {
  headersTimeout: headLimits.requestMs,
  connectionsCheckingInterval: 1_000,
  maxHeaderSize: headLimits.headerBytes,
  // A missing Host is refused by us, with an error that says so.
  requireHostHeader: false,
}

export async function createServer(
  services: Services,
  protocols: Protocols,
  logger: FastifyBaseLogger,
  audience: Audience,
): Promise<FastifyInstance> {
  const { config } = services
  const { tls } = audience
  const options = {
    loggerInstance: logger,
    logController: new LogController({ disableRequestLogging: true }),
    genReqId: () => randomUUID(),
    bodyLimit: config.limits.bodyBytes,
    ...connectionOptions,
    connectionTimeout: 0,
    forceCloseConnections: 'idle',
    ...servesWhileClosing,
    routerOptions: { ignoreTrailingSlash: false, maxParamLength: headLimits.paramLength },
    // Without a route, no other hook counts the request.
    frameworkErrors: (error, _request, reply) => {
      const known = toRivuletError(error)
      services.metrics.errors.inc({ code: known.code })
      return sendError(reply, known)
    },
    clientErrorHandler: rejectBrokenRequest,
  } satisfies FastifyServerOptions
  const app: FastifyInstance = tls
    ? fastify({ ...options, serverFactory: handler => https.createServer({ ...tls, ...connectionOptions, ...httpOptions }, handler) })
    : fastify({ ...options, http: httpOptions })
  app.setValidatorCompiler<z.ZodType>(
    ({ schema }) =>
      value =>
        validate(schema, value),
  )
  // Responses consist of entities that are valid by construction, so their schemas serve only the documentation.
  app.setSerializerCompiler(() => data => JSON.stringify(data))
  app.addHook('onRoute', function ({ method, url }) {
    if (!isGuarded(this) && !isPublic(url)) throw new Error(`${method} ${url} is neither guarded nor public`)
  })
  limitConnections(app, { maxConnections: config.maxConnections, stallMs: config.limits.viewerStallMs }, reason =>
    services.metrics.cutConnections.inc({ reason }),
  )
  rejectWhenClosing(app)
  checkHeads(app)
  rejectFrames(app)
  if (audience.clients) checkHosts(app, config.allowedHosts)
  if (audience.clients) allowOrigins(app, config.origins)
  acceptJsonOnly(app, config.limits)
  handleErrors(app)
  countRequests(app, services.metrics)
  recordRefusals(app, services.refusals)
  let sendPage: ConsolePage | null = null
  app.setNotFoundHandler((request, reply) => (sendPage && wantsPage(request) ? sendPage(reply.status(404)) : notFound(request, reply)))

  await app.register(swagger, openApiOptions(config))
  operationRoutes(app, services)
  await app.register(async scope => {
    // A listener for workers alone is as open as their routes are: others may reach it where they do not reach the rest.
    guardRoutes(scope, services.access, audience.clients ? config.isOpen : config.isInternalOpen)
    metricsRoute(scope, services)
  })
  if (audience.clients) await serveClients()
  if (audience.workers) await serveWorkers()
  return app

  async function serveClients(): Promise<void> {
    docsRoutes(app)
    const events = createEventStream(services, protocols.formats)
    sendPage = consoleRoutes(app)
    await app.register(
      async scope => {
        admitClients(scope)
        checkFileReferences(scope, services.databaseFor)
        createTaskRoute(scope, services, events)
        taskRoutes(scope, services)
        turnRoutes(scope, services, events)
        messageRoutes(scope, services)
        taskChangeRoutes(scope, services)
        eventRoutes(scope, events)
        stateRoutes(scope, services)
        messageEventRoutes(scope, services, events)
        manyEventRoutes(scope, services, events)
        tokenRoutes(scope, services)
        turnHistoryRoutes(scope, services)
        waitRoutes(scope, services, events)
        agentRoutes(scope, services)
        keyRoutes(scope, services)
        auditRoutes(scope, services)
        feedRoutes(scope, services)
        webhookRoutes(scope, services)
        scheduleRoutes(scope, services)
        limitRoutes(scope, services)
        usageRoutes(scope, services)
        storeRoutes(scope, services)
        whoamiRoute(scope)
        await scope.register(async own => fileRoutes(own, services))
      },
      { prefix: '/v1' },
    )
    for (const protocol of protocols.withRoutes) await protocol({ app, services, events, admit: admitClients })
  }

  function admitClients(scope: FastifyInstance, checksOrigin = config.isOpen): void {
    rejectUntilStarted(scope)
    guardRoutes(scope, services.access, config.isOpen)
    hideContents(scope)
    if (checksOrigin) rejectForeignPages(scope, config.origins)
    rejectBeyondCapacity(scope)
  }

  async function serveWorkers(): Promise<void> {
    const calls = createWorkerCalls(services)
    describeWorkerProtocol(app)
    for (const [prefix, routes] of [
      ['/internal', internalRoutes],
      ['/worker/v1', workerRoutes],
    ] as const)
      await app.register(
        async scope => {
          admitWorkers(scope)
          routes(scope, services, calls)
        },
        { prefix },
      )
  }

  function admitWorkers(scope: FastifyInstance): void {
    rejectUntilStarted(scope)
    guardRoutes(scope, services.access, config.isInternalOpen)
    if (config.isInternalOpen) rejectForeignPages(scope, config.origins)
  }

  /** Before the body is read, so that an overloaded API rejects an authorized caller at once. */
  function rejectBeyondCapacity(scope: FastifyInstance): void {
    scope.addHook('onRequest', async ({ routeOptions }) => {
      const rejection = routeOptions.config.contract?.addsWork ? services.capacity.rejection() : null
      if (rejection) throw rejection
    })
  }

  function rejectUntilStarted(scope: FastifyInstance): void {
    scope.addHook('onRequest', async () => {
      if (!services.hasStarted()) throw new RivuletError('dependency_unavailable', 'This process is starting; retry')
    })
  }
}

/** Routes without data of a tenant: health, the description of the API, and the files of the console. */
function isPublic(url: string): boolean {
  return (
    consolePages.includes(url) ||
    /^\/(healthz|readyz|openapi\.json|worker\/v1\/openapi\.json|docs(\/.*)?|assets\/:name|favicon\.svg)$/.test(url)
  )
}
