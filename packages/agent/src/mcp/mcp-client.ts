/**
 * The client side of MCP over HTTP: one request, one response. It speaks version 2026-07-28, which needs no connection, and 2025-11-25 and older with
 * servers that know only those.
 *
 * A response may be JSON or an event stream; of the stream only the result counts. Requests of the server to its client are not served: what a tool needs,
 * it asks for in its result.
 */
import type { Json, JsonObject } from '@rivulet/protocol'
import { AgentError, messageOf } from '../agent-error.ts'
import { fieldsOf } from '../providers/provider-call.ts'
import { rpcMessages } from './rpc-messages.ts'

export type McpOptions = {
  /** Sent with every request: `authorization`, for example. */
  headers?: Record<string, string>
  /** Default: the global one. */
  fetch?: typeof fetch
}

export type McpRequest = {
  method: string
  params?: JsonObject
  /** What the client can do, for this request. */
  capabilities?: JsonObject
  headers?: Record<string, string>
  signal?: AbortSignal | undefined
}

export type McpClient = { readonly era: 'modern' | 'legacy'; request(request: McpRequest): Promise<JsonObject> }

const modernVersion = '2026-07-28'
const legacyVersion = '2025-11-25'
const clientInfo = { name: 'rivulet', version: '0.2.0' }

type Session = { version: string; id: string | null }
type Reply = { response: Response; message: JsonObject }

export async function connectMcp(url: string, { headers: own = {}, fetch: given }: McpOptions): Promise<McpClient> {
  let count = 0
  let session: Session | null = null
  const discovered = await modern({ method: 'server/discover' })
  if (supportsModern(discovered)) return { era: 'modern', request: async request => resultOf(await modern(request)) }
  if (discovered.response.status === 401 || discovered.response.status === 403 || discovered.response.status >= 500)
    throw statusError(discovered.response)
  session = await initialize()
  return { era: 'legacy', request: requestInSession }

  function modern({ method, params = {}, capabilities = {}, headers, signal }: McpRequest): Promise<Reply> {
    const _meta = {
      'io.modelcontextprotocol/protocolVersion': modernVersion,
      'io.modelcontextprotocol/clientInfo': clientInfo,
      'io.modelcontextprotocol/clientCapabilities': capabilities,
    }
    const name = params.name ?? params.taskId
    const named = typeof name === 'string' ? { 'mcp-name': headerText(name) } : {}
    const about = { 'mcp-protocol-version': modernVersion, 'mcp-method': method, ...named, ...headers }
    return post({ id: nextId(), method, params: { ...params, _meta } }, about, signal)
  }

  async function requestInSession(request: McpRequest): Promise<JsonObject> {
    const reply = await legacy(request)
    // The server has forgotten the session.
    if (reply.response.status !== 404 || !session?.id) return resultOf(reply)
    session = await initialize()
    return resultOf(await legacy(request))
  }

  function legacy({ method, params = {}, headers, signal }: McpRequest): Promise<Reply> {
    return post({ id: nextId(), method, params }, { ...sessionHeaders(), ...headers }, signal)
  }

  async function initialize(): Promise<Session> {
    session = null
    const params = { protocolVersion: legacyVersion, capabilities: {}, clientInfo }
    const reply = await post({ id: nextId(), method: 'initialize', params }, {}, undefined)
    const { protocolVersion } = resultOf(reply)
    const version = typeof protocolVersion === 'string' ? protocolVersion : legacyVersion
    session = { version, id: reply.response.headers.get('mcp-session-id') }
    await post({ method: 'notifications/initialized' }, sessionHeaders(), undefined)
    return session
  }

  function sessionHeaders(): Record<string, string> {
    if (!session) return {}
    return { 'mcp-protocol-version': session.version, ...(session.id && { 'mcp-session-id': session.id }) }
  }

  async function post(
    message: { id?: number; method: string; params?: JsonObject },
    headers: Record<string, string>,
    signal: AbortSignal | undefined,
  ): Promise<Reply> {
    // Called as a plain function, because browsers reject a `fetch` whose `this` is not the window.
    const send = given ?? fetch
    try {
      const response = await send(url, {
        method: 'POST',
        headers: { 'content-type': 'application/json', accept: 'application/json, text/event-stream', ...own, ...headers },
        body: JSON.stringify({ jsonrpc: '2.0', ...message }),
        signal: signal ?? null,
      })
      return { response, message: await responseTo(message.id, response) }
    } catch (error) {
      signal?.throwIfAborted()
      if (error instanceof AgentError) throw error
      throw new AgentError(`The MCP server cannot be reached: ${messageOf(error)}`, { cause: error, isRetryable: true })
    }
  }

  function nextId(): number {
    count += 1
    return count
  }
}

/** An empty object where the body has no response to this request. */
async function responseTo(id: number | undefined, response: Response): Promise<JsonObject> {
  if (id === undefined) {
    await response.body?.cancel()
    return {}
  }
  for await (const message of rpcMessages(response)) {
    const isOurs = message.id === id || (message.id === null && 'error' in message)
    if (isOurs && ('result' in message || 'error' in message)) return message
  }
  return {}
}

function resultOf({ response, message: { result, error } }: Reply): JsonObject {
  if (isObject(result)) return result
  if (error === undefined) throw response.ok ? new AgentError('The MCP server sent no response') : statusError(response)
  const { code, message } = fieldsOf(error)
  throw new AgentError(`The MCP server returned an error: ${String(message ?? 'no reason given')} (${String(code)})`)
}

function statusError({ status }: Response): AgentError {
  return new AgentError(`The MCP server returned ${status}`, { status, isRetryable: status === 429 || status >= 500 })
}

function supportsModern({ message: { result } }: Reply): boolean {
  return isObject(result) && Array.isArray(result.supportedVersions) && result.supportedVersions.includes(modernVersion)
}

/** A name that a header cannot have as it is comes in base64. */
function headerText(name: string): string {
  if (/^[\x21-\x7e]([\x20-\x7e]*[\x21-\x7e])?$/.test(name) && !name.startsWith('=?base64?')) return name
  const bytes = Array.from(new TextEncoder().encode(name), byte => String.fromCharCode(byte))
  return `=?base64?${btoa(bytes.join(''))}?=`
}

export function isObject(value: Json | undefined): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
