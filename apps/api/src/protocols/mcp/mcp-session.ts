/**
 * Sessions of older clients. The server keeps none: an id only separates the calls of one client from those of another, so that a client can cancel its call by the id
 * of the request. The call is kept under an Idempotency-Key that is made of both, so any API finds its turn.
 */
import type { RpcRequest } from '@rivulet/contract/json-rpc'
import { isObject, type TaskId, taskIdSchema } from '@rivulet/protocol'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { z } from 'zod'
import { responseUnder } from '../../http/requests/idempotent.ts'
import type { Database } from '../../store/connection/database.ts'
import { paramsOf } from '../json-rpc.ts'

const sessionHeader = 'mcp-session-id'
const cancelParams = z.object({ requestId: z.union([z.string().max(200), z.number()]) })

export function beginSession(reply: FastifyReply): void {
  reply.header(sessionHeader, crypto.randomUUID())
}

/** A client that sends an Idempotency-Key of its own keeps it. */
export function keepCall({ headers }: FastifyRequest, { id }: RpcRequest): void {
  const key = id === undefined ? null : callKey(headers, id)
  if (key !== null) headers['idempotency-key'] ??= key
}

/** The turn of the call that a client cancels; null for a call that is not known. */
export async function cancelledCall(
  db: Database,
  request: FastifyRequest,
  rpc: RpcRequest,
): Promise<{ task: TaskId; number: number } | null> {
  const key = callKey(request.headers, paramsOf(cancelParams, rpc).requestId)
  const kept = key === null ? null : await responseUnder(db, request, key)
  const { data } = storedTurn.safeParse(isObject(kept) ? kept.turn : null)
  return data ?? null
}

const storedTurn = z.object({ task: taskIdSchema, number: z.int() })

function callKey(headers: FastifyRequest['headers'], id: string | number): string | null {
  const { data } = z.uuid().safeParse(headers[sessionHeader])
  return data === undefined ? null : `mcp:${data}:${encodeURIComponent(JSON.stringify(id))}`.slice(0, 255)
}
