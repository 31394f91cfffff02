/**
 * A2A as JSON-RPC at `/a2a/:agent`, and the cards of the agents. The header `A2A-Version` decides between 1.0 and 0.3, or else the spelling of the
 * method.
 */
import * as contract from '@rivulet/contract/a2a'
import type { Agent } from '@rivulet/contract/agents'
import type { RpcRequest } from '@rivulet/contract/json-rpc'
import { RivuletError } from '@rivulet/protocol'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { z } from 'zod'
import { mayRead, mayUse } from '../../access/principal.ts'
import { isKnown } from '../../http/requests/files/file-range.ts'
import type { EventStream } from '../../http/routes/tasks/events.ts'
import { serve } from '../../http/serve.ts'
import type { Services } from '../../http/services.ts'
import { listAgents } from '../../store/agents/agents.ts'
import { paramsOf, RpcError, resultOf, sendRpcErrors } from '../json-rpc.ts'
import { cardOf, etagOf } from './a2a-card.ts'
import { legacyChunk, legacyTask } from './a2a-legacy.ts'
import { noPush } from './a2a-message.ts'
import { type Binding, createA2aOperations } from './a2a-operations.ts'

const taskParams = z.object({ id: z.string(), historyLength: z.int().min(0).nullish() })

/** The methods of 1.0, each with its name in 0.3. */
const legacyNames = {
  SendMessage: 'message/send',
  SendStreamingMessage: 'message/stream',
  GetTask: 'tasks/get',
  CancelTask: 'tasks/cancel',
  SubscribeToTask: 'tasks/resubscribe',
  CreateTaskPushNotificationConfig: 'tasks/pushNotificationConfig/set',
  GetTaskPushNotificationConfig: 'tasks/pushNotificationConfig/get',
  ListTaskPushNotificationConfigs: 'tasks/pushNotificationConfig/list',
  DeleteTaskPushNotificationConfig: 'tasks/pushNotificationConfig/delete',
  GetExtendedAgentCard: 'agent/getAuthenticatedExtendedCard',
  ListTasks: 'tasks/list',
} as const
type Method = keyof typeof legacyNames

export function a2aRoutes(scope: FastifyInstance, services: Services, events: EventStream): void {
  const { databaseFor, config } = services
  const operations = createA2aOperations(services, scope.log, events)
  sendRpcErrors(scope)

  serve(scope, contract.getAgentCard, async (request, reply) => {
    const { principal, params } = request
    const agents = await listAgents(databaseFor(principal), principal.tenant, config.leaseMs)
    return sendCard(
      request,
      reply,
      agents.find(({ name }) => name === params.agent),
    )
  })

  serve(scope, contract.callAgent, async (request, reply) => {
    if (!mayRead(request.principal)) throw new RivuletError('forbidden', 'This key or token does not have the required scope')
    if (request.body.id === undefined) return reply.status(202).send(null)
    return respond(request, reply, request.params.agent, request.body)
  })

  async function respond(request: FastifyRequest, reply: FastifyReply, agent: string, rpc: RpcRequest): Promise<FastifyReply> {
    const { method, isLegacy } = methodOf(rpc, revisionOf(request))
    const binding = bindingOf(rpc, isLegacy)
    switch (method) {
      case 'SendMessage':
        return operations.send(request, reply, agent, paramsOf(contract.sendParams, rpc), binding)
      case 'SendStreamingMessage':
        return operations.stream(request, reply, agent, paramsOf(contract.sendParams, rpc), binding)
      case 'GetTask': {
        const { id, historyLength } = paramsOf(taskParams, rpc)
        return reply.send(binding.task(await operations.get(request, agent, id, historyLength ?? undefined)))
      }
      case 'CancelTask':
        return reply.send(binding.task(await operations.cancel(request, agent, paramsOf(taskParams, rpc).id)))
      case 'SubscribeToTask':
        return operations.subscribe(request, reply, agent, paramsOf(taskParams, rpc).id, binding)
      case 'CreateTaskPushNotificationConfig':
      case 'GetTaskPushNotificationConfig':
      case 'ListTaskPushNotificationConfigs':
      case 'DeleteTaskPushNotificationConfig':
        throw noPush()
      case 'GetExtendedAgentCard':
        throw noExtendedCard()
      case 'ListTasks':
        return reply.send(binding.page(await operations.list(request, agent, paramsOf(contract.listParams, rpc))))
      default:
        return method satisfies never
    }
  }
}

/** At the host itself, where clients look first. A host has one card, so the caller has to have one agent. */
export function a2aHostRoute(scope: FastifyInstance, { databaseFor, config }: Services): void {
  serve(scope, contract.getHostCard, async (request, reply) => {
    const { principal } = request
    const agents = await listAgents(databaseFor(principal), principal.tenant, config.leaseMs)
    const [only, ...others] = agents.filter(({ name }) => mayUse(principal, name))
    if (others.length > 0)
      throw new RivuletError('not_found', 'There are several agents: read the card of one at /a2a/<agent>/.well-known/agent-card.json')
    return sendCard(request, reply, only)
  })
}

function sendCard(request: FastifyRequest, reply: FastifyReply, agent: Agent | undefined): FastifyReply {
  if (!agent) throw new RivuletError('not_found', 'No such agent')
  const card = cardOf(agent, `${request.protocol}://${request.host}/a2a/${agent.name}`)
  const etag = etagOf(card)
  reply.header('etag', etag).header('cache-control', 'private, max-age=60')
  return isKnown(request.headers, etag) ? reply.status(304).send(null) : reply.send(card)
}

export function noExtendedCard(): RpcError {
  return new RpcError('extendedAgentCardNotConfigured', 'There is no extended card')
}

type Revision = '1.0' | '0.3'

/** Null where the request does not name its revision, as most clients of 0.3 do not. */
export function revisionOf({ headers }: FastifyRequest): Revision | null {
  const version = headers['a2a-version'] || null
  if (version === null) return null
  if (typeof version === 'string' && /^1\.\d+(\.\d+)?$/.test(version)) return '1.0'
  if (typeof version === 'string' && /^0\.3(\.\d+)?$/.test(version)) return '0.3'
  throw new RpcError('versionNotSupported', 'This API speaks A2A 1.0 and 0.3')
}

/** Without a revision, the spelling of the method decides. */
function methodOf({ method }: RpcRequest, revision: Revision | null): { method: Method; isLegacy: boolean } {
  const known = Object.keys(legacyNames) as Method[]
  const found = known.find(name => name === method || legacyNames[name] === method)
  if (!found) throw new RpcError('methodNotFound', 'Method not found')
  return { method: found, isLegacy: revision === null ? found !== method : revision === '0.3' }
}

function bindingOf(rpc: RpcRequest, isLegacy: boolean): Binding {
  if (isLegacy)
    return {
      sent: task => resultOf(rpc, legacyTask(task)),
      task: task => resultOf(rpc, legacyTask(task)),
      page: page => resultOf(rpc, { ...page, tasks: page.tasks.map(legacyTask) }),
      chunk: chunk => resultOf(rpc, legacyChunk(chunk)),
    }
  const wrap = (result: object) => resultOf(rpc, result)
  return { sent: task => wrap({ task }), task: wrap, page: wrap, chunk: wrap }
}
