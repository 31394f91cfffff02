/**
 * A server of the Model Context Protocol at `/mcp`: every agent is a tool. It holds nothing between two requests: a task of MCP is a turn, and what a turn
 * asks for is a request for input.
 *
 * A call gets JSON, or a stream if its client wants progress. A client that closes either cancels nothing: a turn goes on when its caller leaves.
 */
import type { RpcRequest } from '@rivulet/contract/json-rpc'
import * as contract from '@rivulet/contract/mcp'
import { createTaskBody } from '@rivulet/contract/tasks'
import { hasEnded, hasOpenQuestion, jsonObjectSchema, type Message, RivuletError, type Turn, turnIdSchema } from '@rivulet/protocol'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { z } from 'zod'
import { mayRead } from '../../access/principal.ts'
import type { Protocol } from '../../http/protocol.ts'
import { createAcceptTurn } from '../../http/requests/accept-turn.ts'
import { createAnswerWaits } from '../../http/requests/answer-waits.ts'
import { createAudit, turnCancel } from '../../http/requests/audited.ts'
import { createTurnResults } from '../../http/requests/turn-result.ts'
import type { EventStream } from '../../http/routes/tasks/events.ts'
import { serve } from '../../http/serve.ts'
import type { Services } from '../../http/services.ts'
import { listAgents } from '../../store/agents/agents.ts'
import { turnMessages } from '../../store/reads/messages.ts'
import { findOwnTurn, findThread } from '../../store/reads/threads.ts'
import { type TurnRow, toTurn } from '../../store/rows.ts'
import { paramsOf, RpcError, resultOf, sendRpcErrors } from '../json-rpc.ts'
import { type McpCall, mcpCall } from './mcp-call.ts'
import { type Envelope, envelopeOf, legacyVersions, modernVersion, tasksExtension } from './mcp-envelope.ts'
import { createListening } from './mcp-listening.ts'
import { beginSession, cancelledCall, keepCall } from './mcp-session.ts'
import { mcpTask, taskHead } from './mcp-task.ts'
import { answerOf, inputRequests, toolOf, toolResult, waitingResult } from './mcp-tool.ts'

const callParams = z.object({
  name: z.string(),
  arguments: z.object({ message: z.string(), task: z.string().min(1).max(200).optional(), params: jsonObjectSchema.optional() }),
})
const inputResponses = z.record(
  z.string(),
  z.object({ action: z.enum(['accept', 'decline', 'cancel']), content: jsonObjectSchema.optional() }),
)
const retryParams = z.object({ requestState: turnIdSchema.optional(), inputResponses: inputResponses.optional() })
const progressParams = z.object({ _meta: z.object({ progressToken: z.union([z.string().max(200), z.number()]).optional() }).optional() })
const taskParams = z.object({ taskId: z.string() })
const listenParams = z.object({ notifications: z.object({ taskIds: z.array(z.string()).max(100).default([]) }) })
const serverInfo = { name: 'rivulet', version: '0.2.0' }
const cached = { ttlMs: 30_000, cacheScope: 'private' }

type FoundTurn = { turn: TurnRow; agent: string }

export const mcp: Protocol = async ({ app, services, events, admit }) => {
  await app.register(async scope => {
    // Also of an API that requires keys, because the protocol demands it.
    admit(scope, true)
    mcpRoutes(scope, services, events)
  })
}

function mcpRoutes(scope: FastifyInstance, services: Services, events: EventStream): void {
  const { databaseFor, ending, relay, capacity, config } = services
  const { requireShare, accept } = createAcceptTurn(services, scope.log)
  const answerWaits = createAnswerWaits(services)
  const { note } = createAudit(services)
  const results = createTurnResults(services)
  const listen = createListening(services)
  sendRpcErrors(scope)

  serve(scope, contract.callMcp, async (request, reply) => {
    if (!mayRead(request.principal)) throw new RivuletError('forbidden', 'This key or token does not have the required scope')
    if (request.body.id === undefined) {
      await receive(request, request.body)
      return reply.status(202).send(null)
    }
    const envelope = envelopeOf(request, request.body)
    const result = await resultFor(request, reply, request.body, envelope)
    // A call that waits, and a subscription, have sent their response.
    return result === null ? reply : resultOf(request.body, complete(envelope, result))
  })

  async function resultFor(request: FastifyRequest, reply: FastifyReply, rpc: RpcRequest, envelope: Envelope): Promise<object | null> {
    switch (rpc.method) {
      case 'initialize':
        beginSession(reply)
        return initialized(rpc)
      case 'ping':
        return {}
      case 'server/discover':
        return { supportedVersions: [modernVersion], capabilities, ...cached, _meta: { 'io.modelcontextprotocol/serverInfo': serverInfo } }
      case 'tools/list':
        return listTools(request, envelope)
      case 'tools/call':
        return call(request, reply, rpc, envelope)
      case 'tasks/get':
        return describe(request, await taskOf(request, rpc, envelope))
      case 'tasks/update': {
        const found = await taskOf(request, rpc, envelope)
        await respond(request, found, paramsOf(retryParams, rpc).inputResponses ?? {})
        return {}
      }
      case 'tasks/cancel': {
        const { turn } = await taskOf(request, rpc, envelope)
        await ending.cancelTurn(request.principal, turn.task, turn.number, note(request, turnCancel(turn)))
        relay.kick()
        return {}
      }
      case 'subscriptions/listen':
        return subscribe(request, reply, rpc, envelope)
      default:
        throw unknownMethod(envelope)
    }
  }

  /** Tasks that the caller does not have are left out of what is acknowledged. */
  async function subscribe(request: FastifyRequest, reply: FastifyReply, rpc: RpcRequest, envelope: Envelope): Promise<null> {
    if (envelope.era !== 'modern') throw unknownMethod(envelope)
    const taskIds = new Set(paramsOf(listenParams, rpc).notifications.taskIds)
    if (taskIds.size > 0) requireTasks(envelope)
    const turns = (await Promise.all([...taskIds].map(id => find(request, id)))).flatMap(found => found?.turn ?? [])
    const admission = events.reserve(request, ...new Set(turns.map(({ task }) => task)))
    const read = async (id: string) => {
      const found = await find(request, id)
      return found && { turn: found.turn, task: await describe(request, found) }
    }
    await listen(reply, { rpc, turns, read }, admission)
    return null
  }

  async function listTools({ principal }: FastifyRequest, { era }: Envelope): Promise<object> {
    const agents = await listAgents(databaseFor(principal), principal.tenant, config.leaseMs)
    return { tools: agents.map(toolOf), ...(era === 'modern' && cached) }
  }

  /** A call, or the next round of one whose turn has asked for input. */
  async function call(request: FastifyRequest, reply: FastifyReply, rpc: RpcRequest, envelope: Envelope): Promise<object | null> {
    const { requestState, inputResponses: given = {} } = paramsOf(retryParams, rpc)
    const isTask = envelope.era === 'modern' && envelope.hasTasks
    if (envelope.era === 'legacy') keepCall(request, rpc)
    const admission = isTask ? null : events.reserve(request)
    try {
      const found = requestState === undefined ? await begin(request, reply, rpc) : await own(request, requestState)
      if (requestState !== undefined) await respond(request, found, given)
      if (!admission) return { ...taskHead(toTurn(found.turn)), resultType: 'task' }
      const { task, number: turnNumber } = found.turn
      const progressToken = requestState === undefined && events.wants(request) ? progressTokenOf(rpc) : undefined
      if (progressToken !== undefined) {
        const respond: McpCall['respond'] = (turn, messages) =>
          resultOf(rpc, complete(envelope, outcome({ ...turn, id: found.turn.id, task }, messages, envelope)))
        const readEnded = async () => {
          const { status, waits } = toTurn((await own(request, found.turn.id)).turn)
          return hasEnded(status) || hasOpenQuestion(waits)
            ? resultOf(rpc, complete(envelope, await outcomeOf(request, found, envelope)))
            : null
        }
        const dialect = mcpCall({ turnNumber, progressToken, respond, read: readEnded })
        await events.stream(task, reply, { cursor: 'log', isFollowing: true, dialect, turnNumber }, admission)
        return null
      }
      const read = async () => ({ body: resultOf(rpc, complete(envelope, await outcomeOf(request, found, envelope))) })
      await results.send(reply, { task, turnNumber, admission, asks: hasOpenQuestion, read })
      return null
    } catch (error) {
      admission?.over()
      throw error
    }
  }

  async function begin(request: FastifyRequest, reply: FastifyReply, rpc: RpcRequest): Promise<FoundTurn> {
    const { principal } = request
    const { name: agent, arguments: given } = paramsOf(callParams, rpc)
    const rejection = capacity.rejection()
    if (rejection) throw rejection
    await requireShare(request)
    const task = given.task === undefined ? null : await findThread(databaseFor(principal), principal.tenant, agent, given.task)
    const { message, params, task: name } = given
    const input = { type: 'text', text: message, format: 'plain' } as const
    const named = paramsOf(createTaskBody, { params: { agent, ...(name !== undefined && { name }) } })
    const body = { ...named, input, ...(params && { params }) }
    const wanted = task ? ({ of: 'task', task, agent, input, params, ifBusy: 'decline' } as const) : ({ of: 'new task', body } as const)
    const { turn, dispatch } = await accept(request, reply, wanted)
    dispatch()
    return own(request, turn.id)
  }

  async function outcomeOf({ principal }: FastifyRequest, { turn: { id } }: FoundTurn, envelope: Envelope): Promise<object> {
    const db = databaseFor(principal)
    const found = await findOwnTurn(db, principal.tenant, id)
    if (!found) throw new RivuletError('task_not_found', 'No such task')
    const turn = toTurn(found.turn)
    return outcome(turn, await turnMessages(db, principal.tenant, turn.task, turn.joinedTo ?? turn.number), envelope)
  }

  async function receive(request: FastifyRequest, rpc: RpcRequest): Promise<void> {
    const { principal } = request
    if (rpc.method !== 'notifications/cancelled') return
    const turn = await cancelledCall(databaseFor(principal), request, rpc)
    if (!turn) return
    await ending.cancelTurn(principal, turn.task, turn.number, note(request, turnCancel(turn)))
    relay.kick()
  }

  /** Responses to waits that are unknown or closed are ignored. */
  async function respond(request: FastifyRequest, { turn }: FoundTurn, given: z.output<typeof inputResponses>): Promise<void> {
    const responses = (turn.waits ?? []).flatMap(wait => {
      const response = given[wait.id]
      return response ? [{ wait: wait.id, answer: answerOf(wait, response) }] : []
    })
    if (responses.length > 0) await answerWaits(request, turn.task, responses)
  }

  async function taskOf(request: FastifyRequest, rpc: RpcRequest, envelope: Envelope): Promise<FoundTurn> {
    if (envelope.era !== 'modern') throw unknownMethod(envelope)
    requireTasks(envelope)
    return own(request, paramsOf(taskParams, rpc).taskId)
  }

  async function own(request: FastifyRequest, id: string): Promise<FoundTurn> {
    const found = await find(request, id)
    if (!found) throw new RpcError('invalidParams', 'No such task')
    return found
  }

  async function find({ principal }: FastifyRequest, id: string): Promise<FoundTurn | undefined> {
    const known = turnIdSchema.safeParse(id).data
    return known === undefined ? undefined : findOwnTurn(databaseFor(principal), principal.tenant, known)
  }

  async function describe({ principal }: FastifyRequest, { turn: row }: FoundTurn): Promise<object> {
    const turn = toTurn(row)
    if (turn.status !== 'completed') return mcpTask(turn, [])
    return mcpTask(turn, await turnMessages(databaseFor(principal), principal.tenant, turn.task, turn.joinedTo ?? turn.number))
  }
}

/** A turn that asks for something has a result, too: what it asks, in the words that the client knows. */
function outcome(turn: Pick<Turn, 'id' | 'task' | 'status' | 'error' | 'waits'>, messages: readonly Message[], envelope: Envelope): object {
  if (!hasOpenQuestion(turn.waits)) return toolResult(turn, messages)
  if (envelope.era === 'legacy' || !envelope.elicits) return waitingResult(turn)
  return { resultType: 'input_required', inputRequests: inputRequests(turn.waits ?? []), requestState: turn.id }
}

/** Present where the client wants the progress of its call. */
function progressTokenOf(rpc: RpcRequest): string | number | undefined {
  return paramsOf(progressParams, rpc)._meta?.progressToken
}

function requireTasks({ hasTasks }: Extract<Envelope, { era: 'modern' }>): void {
  if (hasTasks) return
  throw new RpcError('missingCapability', 'The client has not declared the extension of tasks', {
    ...{ status: 400, data: { requiredCapabilities: { extensions: { [tasksExtension]: {} } } } },
  })
}

/** 2026-07-28 has a status for it. */
function unknownMethod({ era }: Envelope): RpcError {
  return new RpcError('methodNotFound', 'Method not found', { status: era === 'modern' ? 404 : 200 })
}

const capabilities = { tools: {}, extensions: { [tasksExtension]: {} } }

/** A client of an older revision gets the one it asks for. There is no session. */
function initialized({ params = {} }: RpcRequest): object {
  const version = legacyVersions.find(known => known === params.protocolVersion) ?? legacyVersions[0]
  return { protocolVersion: version, capabilities: { tools: {} }, serverInfo }
}

function complete({ era }: Envelope, result: object): object {
  return era === 'modern' ? { resultType: 'complete', ...result } : result
}
