/** The header `Idempotency-Key` of a POST: its validation, and the replay of stored responses. */
import { createHash } from 'node:crypto'
import { type Json, RivuletError, type TaskId } from '@rivulet/protocol'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { namespaceOf, type Principal } from '../../access/principal.ts'
import {
  findResponse,
  type IdempotencyKey,
  keptResponse,
  type OnceResponse,
  runOnce,
  type StoredResponse,
} from '../../store/access/idempotency.ts'
import type { Database, Transaction } from '../../store/connection/database.ts'

/** `task`: the one whose row the work holds. `body`: what stands for a body that was not parsed. */
type OnceOptions = { task?: TaskId | null; body?: unknown }

/** Carries a request out once; a repeated one gets the same response again. */
export function respondOnce(
  db: Database,
  request: FastifyRequest,
  work: (tx: Transaction) => Promise<StoredResponse>,
  { task = null, body = request.body }: OnceOptions = {},
): Promise<OnceResponse> {
  return runOnce(db, keyOf(request, body), work, task)
}

/** The answer that was given under this request's key before. For work that is not one transaction: look, do it, then `respondOnce`. */
export async function earlierResponse(db: Database, request: FastifyRequest): Promise<OnceResponse | null> {
  const key = keyOf(request)
  return key && findResponse(db, key)
}

/** What this caller got under a key, for a later request that names the key. */
export function responseUnder(db: Database, { principal }: FastifyRequest, key: string): Promise<Json> {
  return keptResponse(db, { tenant: principal.tenant, key: storedKey(principal, key) })
}

export function sendResponse(reply: FastifyReply, response: OnceResponse): FastifyReply {
  markReplay(reply, response.replayed)
  return reply.status(response.status).send(response.body)
}

export function markReplay(reply: FastifyReply, replayed: boolean): void {
  if (replayed) reply.header('idempotent-replayed', 'true')
}

/** The request's key, with what was asked under it; null where it has none. */
export function keyOf(request: FastifyRequest, body: unknown = request.body): IdempotencyKey | null {
  const key = givenKey(request)
  if (key === null) return null
  const { method, routeOptions, params, query, principal } = request
  const { contract } = routeOptions.config
  if (contract?.idempotencyKey !== 'kept') throw new Error(`The contract keeps no response of ${method} ${routeOptions.url}`)
  // The route and its parameters, not the URL: an id by capitals is the same id.
  const said = JSON.stringify([method, routeOptions.url, params, query, withoutRpcId(withoutSecrets(body ?? null)) as Json])
  const fingerprint = createHash('sha256').update(said).digest('hex')
  return { tenant: principal.tenant, key: storedKey(principal, key), fingerprint }
}

/** The header, as the caller sent it. */
export function givenKey({ headers }: Pick<FastifyRequest, 'headers'>): string | null {
  const key = headers['idempotency-key']
  if (key === undefined) return null
  if (typeof key !== 'string' || !/^[\x21-\x7e]{1,255}$/.test(key)) {
    throw new RivuletError('idempotency_key_invalid', 'An Idempotency-Key must be 1 to 255 printable ASCII characters without spaces')
  }
  return key
}

/** A key has no spaces, so no two callers can come to the same text. */
function storedKey(principal: Principal, key: string): string {
  return `${namespaceOf(principal)} ${key}`
}

/** With their names alone, because the stored fingerprint of a value would help to guess it. */
function withoutSecrets(body: unknown): unknown {
  if (typeof body !== 'object' || body === null || !('secrets' in body)) return body
  return { ...body, secrets: Object.keys(body.secrets ?? {}) }
}

/** The id of a JSON-RPC request is another one when the request is repeated. */
function withoutRpcId(body: unknown): unknown {
  return typeof body === 'object' && body !== null && 'jsonrpc' in body && 'id' in body ? { ...body, id: null } : body
}

/** For a call whose response has a secret. */
export function rejectIdempotencyKey({ headers }: FastifyRequest): void {
  if (headers['idempotency-key'] !== undefined)
    throw new RivuletError('idempotency_key_invalid', 'This call takes no Idempotency-Key, because the API never stores a secret')
}
