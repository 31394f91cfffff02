/** What is wrong with an answer that is an error, against the one shape that all of them have. Sentences; none when it is right. */
import { type ErrorRow, errorTable, isErrorCode } from '@rivulet/protocol'
import type { RawReply } from '../viewers/raw-http.ts'

export function shapeFaults({ status, headers, body }: RawReply): string[] {
  if (!headers['content-type']?.startsWith('application/json')) return [`Its type is ${headers['content-type']}`]
  const rpc = parseRpc(body)
  if (rpc) return rpcFaults({ status, headers }, rpc)
  const error = parse(body)
  if (!error) return ['It is not { "error": … } and nothing else']
  return typeof error.code === 'number' ? statusFaults(status, error) : errorFaults({ status, headers }, error)
}

function errorFaults({ status, headers }: Pick<RawReply, 'status' | 'headers'>, error: Record<string, unknown>): string[] {
  // The last two are in errors of routes that speak OpenAI's protocol.
  const { code, message, requestId, details, type, param, ...rest } = error
  const expected: Partial<ErrorRow> = isErrorCode(code) ? errorTable[code] : {}
  return [
    ...(expected.status === status ? [] : [`${String(code)} came with ${status}`]),
    ...(expected.afterSeconds === undefined || Number(headers['retry-after']) > 0 ? [] : ['It does not say when to come back']),
    ...(typeof message === 'string' && message.length > 0 && message.length < 300 ? [] : ['Its message is not a short text']),
    ...(typeof requestId === 'string' && /^[\da-f-]{36}$/.test(requestId) ? [] : ['Its requestId is not a UUID']),
    ...(details === undefined || areDetails(details) ? [] : ['Its details are malformed']),
    ...(type === undefined || typeof type === 'string' ? [] : ['Its type is not a text']),
    ...(param === undefined || param === null || typeof param === 'string' ? [] : ['Its param is not a text']),
    ...Object.keys(rest).map(name => `It has ${name}`),
  ]
}

/** The shape of Google's APIs, in which A2A has its errors over plain HTTP. */
function statusFaults(status: number, { code, status: name, message, details, ...rest }: Record<string, unknown>): string[] {
  const [info = {}] = (Array.isArray(details) ? details : []) as Record<string, unknown>[]
  const { requestId } = (info.metadata ?? {}) as Record<string, unknown>
  return [
    ...(code === status && typeof name === 'string' ? [] : [`${String(code)} came with ${status}`]),
    ...(typeof message === 'string' && message.length > 0 && message.length < 300 ? [] : ['Its message is not a short text']),
    ...(typeof info.reason === 'string' && /^[A-Z][A-Z\d_]+$/.test(info.reason) ? [] : ['It has no reason']),
    ...(typeof requestId === 'string' && /^[\da-f-]{36}$/.test(requestId) ? [] : ['Its requestId is not a UUID']),
    ...Object.keys(rest).map(field => `It has ${field}`),
  ]
}

/** JSON-RPC has its own code and message; our error is its data, unless the protocol says what that is. */
function rpcFaults(reply: Pick<RawReply, 'status' | 'headers'>, { code, message, data, ...rest }: Record<string, unknown>): string[] {
  const own = (data ?? {}) as Record<string, unknown>
  return [
    ...(Number.isInteger(code) && typeof message === 'string' ? [] : ['It is not an error of JSON-RPC']),
    ...('requestId' in own ? errorFaults(reply, own) : []),
    ...Object.keys(rest).map(name => `It has ${name}`),
  ]
}

function parseRpc(body: string): Record<string, unknown> | null {
  try {
    const { jsonrpc, id, error, ...rest } = JSON.parse(body) as Record<string, unknown>
    return jsonrpc === '2.0' && id !== undefined && Object.keys(rest).length === 0 ? (error as Record<string, unknown>) : null
  } catch {
    return null
  }
}

function parse(body: string): Record<string, unknown> | null {
  try {
    const { error, ...rest } = JSON.parse(body) as { error?: unknown }
    return typeof error === 'object' && error !== null && Object.keys(rest).length === 0 ? (error as Record<string, unknown>) : null
  } catch {
    return null
  }
}

function areDetails(details: unknown): boolean {
  const isDetail = (detail: unknown) => {
    const { path, reason, ...rest } = detail as Record<string, unknown>
    return typeof path === 'string' && path.startsWith('/') && typeof reason === 'string' && Object.keys(rest).length === 0
  }
  return Array.isArray(details) && details.length > 0 && details.every(isDetail)
}
