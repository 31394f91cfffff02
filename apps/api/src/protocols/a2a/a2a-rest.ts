/** A2A 1.0 as HTTP+JSON, below `/a2a/:agent`. Errors have the shape of Google's APIs, as A2A has it. */
import * as contract from '@rivulet/contract/a2a'
import type { FastifyError, FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { errorBody, logFailure, sendError, toRivuletError } from '../../http/errors.ts'
import type { EventStream } from '../../http/routes/tasks/events.ts'
import { serve } from '../../http/serve.ts'
import type { Services } from '../../http/services.ts'
import { RpcError, type RpcErrorName } from '../json-rpc.ts'
import { noPush } from './a2a-message.ts'
import { type Binding, createA2aOperations } from './a2a-operations.ts'
import { noExtendedCard, revisionOf } from './a2a-rpc.ts'

const binding: Binding = { sent: task => ({ task }), task: task => task, page: page => page, chunk: chunk => chunk }

export function a2aRestRoutes(scope: FastifyInstance, services: Services, events: EventStream): void {
  const { send, stream, get, list, cancel, subscribe } = createA2aOperations(services, scope.log, events)
  sendA2aErrors(scope)
  acceptA2aJson(scope)
  scope.addHook('preHandler', async request => {
    if (revisionOf(request) === '0.3') throw new RpcError('versionNotSupported', 'HTTP+JSON is of A2A 1.0; 0.3 is served as JSON-RPC')
  })

  serve(scope, contract.sendAgentMessage, async (request, reply) =>
    send(request, reply.type(contract.mediaType), request.params.agent, request.body, binding),
  )
  serve(scope, contract.streamAgentMessage, async (request, reply) => stream(request, reply, request.params.agent, request.body, binding))
  serve(scope, contract.listAgentTasks, async (request, reply) =>
    reply.type(contract.mediaType).send(await list(request, request.params.agent, request.query)),
  )
  serve(scope, contract.getAgentTask, async (request, reply) => {
    const { agent, task } = request.params
    const { historyLength } = request.query
    const [id, verb] = partsOf(task)
    if (verb === 'subscribe') return subscribe(request, reply, agent, id, binding)
    if (verb !== undefined) throw new RpcError('methodNotFound', 'No such operation')
    return reply
      .type(contract.mediaType)
      .send(await get(request, agent, id, historyLength === undefined ? undefined : Number(historyLength)))
  })
  serve(scope, contract.changeAgentTask, async (request, reply) => {
    const { agent, task } = request.params
    const [id, verb] = partsOf(task)
    if (verb === 'subscribe') return subscribe(request, reply, agent, id, binding)
    if (verb !== 'cancel') throw new RpcError('methodNotFound', 'No such operation')
    return reply.type(contract.mediaType).send(await cancel(request, agent, id))
  })
}

function acceptA2aJson(scope: FastifyInstance): void {
  scope.addHook('onRequest', async ({ headers }) => {
    if (headers['content-type']?.startsWith(contract.mediaType)) headers['content-type'] = 'application/json'
    // The SDK names the type of a body that it does not send.
    if (headers['content-length'] === '0') delete headers['content-type']
  })
}

function partsOf(task: string): [id: string, verb: string | undefined] {
  const [id = '', verb] = task.split(':', 2)
  return [id, verb]
}

function sendA2aErrors(scope: FastifyInstance): void {
  scope.setErrorHandler((error: FastifyError | RpcError, request, reply) => {
    if (error instanceof RpcError) return sendRpcError(error, request, reply)
    const known = toRivuletError(error, request.routeOptions.bodyLimit)
    logFailure(request, known, error)
    const { status = 500 } = known.row
    // A path without key names that only this caller could have chosen.
    const [first] = errorBody(known.code, known.publicMessage, request.id, known.details).error.details ?? []
    const message = first ? `${known.publicMessage}: ${first.path} ${first.reason}`.slice(0, 250) : known.publicMessage
    const name = names[status] ?? (status >= 500 ? 'INTERNAL' : 'INVALID_ARGUMENT')
    const body = bodyOf({ code: status, status: name, message }, known.code.toUpperCase(), request.id)
    return sendError(reply.type('application/json'), known, body)
  })
}

/** A path below `/a2a` that no route has. Operations that this API does not offer get A2A's error for them. */
export function rejectUnknownPaths(scope: FastifyInstance): void {
  sendA2aErrors(scope)
  acceptA2aJson(scope)
  scope.setNotFoundHandler((request, reply) => sendRpcError(absent(request.url), request, reply))
}

function absent(url: string): RpcError {
  const [, operation] = /^\/a2a\/[^/]+\/(extendedAgentCard|tasks\/[^/]+\/pushNotificationConfigs)(?=[/?]|$)/.exec(url) ?? []
  if (operation === undefined) return new RpcError('methodNotFound', 'No such operation')
  return operation === 'extendedAgentCard' ? noExtendedCard() : noPush()
}

function sendRpcError({ kind, message }: RpcError, { id }: FastifyRequest, reply: FastifyReply): FastifyReply {
  const { code, status, reason } = rows[kind] ?? { code: 400, status: 'INVALID_ARGUMENT', reason: 'INVALID_PARAMS' }
  return reply
    .status(code)
    .type('application/json')
    .send(bodyOf({ code, status, message }, reason, id))
}

function bodyOf(error: { code: number; status: string; message: string }, reason: string, requestId: string) {
  const info = { '@type': 'type.googleapis.com/google.rpc.ErrorInfo', reason, domain: 'a2a-protocol.org', metadata: { requestId } }
  return { error: { ...error, details: [info] } }
}

const rows: Partial<Record<RpcErrorName, { code: number; status: string; reason: string }>> = {
  taskNotFound: { code: 404, status: 'NOT_FOUND', reason: 'TASK_NOT_FOUND' },
  methodNotFound: { code: 404, status: 'NOT_FOUND', reason: 'METHOD_NOT_FOUND' },
  taskNotCancelable: { code: 400, status: 'FAILED_PRECONDITION', reason: 'TASK_NOT_CANCELABLE' },
  unsupportedOperation: { code: 400, status: 'FAILED_PRECONDITION', reason: 'UNSUPPORTED_OPERATION' },
  pushNotificationNotSupported: { code: 400, status: 'FAILED_PRECONDITION', reason: 'PUSH_NOTIFICATION_NOT_SUPPORTED' },
  extendedAgentCardNotConfigured: { code: 400, status: 'FAILED_PRECONDITION', reason: 'EXTENDED_AGENT_CARD_NOT_CONFIGURED' },
  versionNotSupported: { code: 400, status: 'FAILED_PRECONDITION', reason: 'VERSION_NOT_SUPPORTED' },
}

const names: Record<number, string> = {
  401: 'UNAUTHENTICATED',
  403: 'PERMISSION_DENIED',
  404: 'NOT_FOUND',
  409: 'ABORTED',
  429: 'RESOURCE_EXHAUSTED',
  503: 'UNAVAILABLE',
}
