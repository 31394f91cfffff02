/** JSON-RPC 2.0 over HTTP, as MCP and A2A use it: its results, and every error in its shape. */
import { type RpcRequest, rpcRequest } from '@rivulet/contract/json-rpc'
import type { RivuletError } from '@rivulet/protocol'
import type { FastifyError, FastifyInstance, FastifyRequest } from 'fastify'
import type { z } from 'zod'
import { errorBody, logFailure, toRivuletError } from '../http/errors.ts'

export const rpcCodes = {
  parseError: -32700,
  invalidRequest: -32600,
  methodNotFound: -32601,
  invalidParams: -32602,
  internalError: -32603,
  refused: -32000,
  headerMismatch: -32020,
  missingCapability: -32021,
  unsupportedVersion: -32022,
  taskNotFound: -32001,
  taskNotCancelable: -32002,
  pushNotificationNotSupported: -32003,
  unsupportedOperation: -32004,
  extendedAgentCardNotConfigured: -32007,
  versionNotSupported: -32009,
} as const

export type RpcErrorName = keyof typeof rpcCodes

/** An error of the protocol itself. */
export class RpcError extends Error {
  readonly kind: RpcErrorName
  readonly code: number
  readonly status: number
  readonly data: object | undefined

  constructor(kind: RpcErrorName, message: string, { status = 200, data }: { status?: number; data?: object } = {}) {
    super(message)
    this.kind = kind
    this.code = rpcCodes[kind]
    this.status = status
    this.data = data
  }
}

export function resultOf({ id }: RpcRequest, result: object) {
  return { jsonrpc: '2.0' as const, id: id ?? null, result }
}

/** The params of a request, checked. */
export function paramsOf<T extends z.ZodType>(schema: T, { params }: Pick<RpcRequest, 'params'>): z.output<T> {
  const parsed = schema.safeParse(params ?? {})
  if (parsed.success) return parsed.data
  const [issue] = parsed.error.issues
  throw new RpcError('invalidParams', `Invalid params: /${issue?.path.join('/') ?? ''} ${issue?.message ?? ''}`.slice(0, 250))
}

/** A request that was understood and refused gets 200, as JSON-RPC has it; what concerns the connection or the caller keeps its status. */
export function sendRpcErrors(scope: FastifyInstance): void {
  scope.setErrorHandler((error: FastifyError | RpcError, request, reply) => {
    const id = idOf(request)
    if (error instanceof RpcError) {
      const { code, message, data } = error
      return reply.status(error.status).send({ jsonrpc: '2.0', id, error: { code, message, ...(data && { data }) } })
    }
    const known = toRivuletError(error, request.routeOptions.bodyLimit)
    logFailure(request, known, error)
    const { status = 500, afterSeconds } = known.row
    reply.errorCode = known.code
    if (afterSeconds !== undefined && !reply.hasHeader('retry-after')) reply.header('retry-after', String(afterSeconds))
    const { error: data } = errorBody(known.code, known.publicMessage, request.id, known.details)
    const [first] = data.details ?? []
    const message = first ? `${known.publicMessage}: ${first.path} ${first.reason}`.slice(0, 250) : known.publicMessage
    const isOfCall = id !== null && callStatuses.has(status)
    return reply.status(isOfCall ? 200 : status).send({ jsonrpc: '2.0', id, error: { code: codeOf(known, isOfCall), message, data } })
  })
}

const callStatuses: ReadonlySet<number> = new Set([400, 404, 409, 410, 422])

function codeOf({ code }: RivuletError, isOfCall: boolean): number {
  if (code === 'invalid_json') return rpcCodes.parseError
  if (code === 'internal') return rpcCodes.internalError
  if (isOfCall) return rpcCodes.invalidParams
  return code === 'validation_failed' ? rpcCodes.invalidRequest : rpcCodes.refused
}

function idOf({ body }: FastifyRequest): string | number | null {
  const { data } = rpcRequest.safeParse(body)
  return data?.id ?? null
}
