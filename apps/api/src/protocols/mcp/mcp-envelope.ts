/**
 * Which revision of MCP a request speaks, and what its client can do. A request of 2026-07-28 has both in its `_meta`, and repeats the version, the method and
 * the name in headers, for proxies: they have to be the same. Older requests have neither; they are served without a session.
 */
import type { RpcRequest } from '@rivulet/contract/json-rpc'
import type { Json, JsonObject } from '@rivulet/protocol'
import type { FastifyRequest } from 'fastify'
import { RpcError } from '../json-rpc.ts'

export const modernVersion = '2026-07-28'
export const legacyVersions = ['2025-11-25', '2025-06-18', '2025-03-26', '2024-11-05']
export const tasksExtension = 'io.modelcontextprotocol/tasks'

export type Envelope = { era: 'legacy' } | { era: 'modern'; hasTasks: boolean; elicits: boolean }

export function envelopeOf({ headers }: Pick<FastifyRequest, 'headers'>, { method, params = {} }: RpcRequest): Envelope {
  const meta = objectOf(params._meta)
  const version = meta['io.modelcontextprotocol/protocolVersion']
  if (version === undefined) {
    const header = headers['mcp-protocol-version']
    if (header !== undefined && !legacyVersions.some(known => known === header))
      throw unsupported(header, [modernVersion, ...legacyVersions])
    return { era: 'legacy' }
  }
  if (version !== modernVersion) throw unsupported(version, [modernVersion])
  requireSame(headers['mcp-protocol-version'], version, 'MCP-Protocol-Version')
  requireSame(headers['mcp-method'], method, 'Mcp-Method')
  const name = params.name ?? params.taskId
  if (typeof name === 'string' && namedMethods.has(method)) requireSame(decoded(headers['mcp-name']), name, 'Mcp-Name')
  const capabilities = objectOf(meta['io.modelcontextprotocol/clientCapabilities'])
  return {
    era: 'modern',
    hasTasks: tasksExtension in objectOf(capabilities.extensions),
    elicits: capabilities.elicitation !== undefined,
  }
}

function unsupported(requested: Json | undefined, supported: string[]): RpcError {
  return new RpcError('unsupportedVersion', 'Unsupported protocol version', {
    ...{
      status: 400,
      data: { supported, requested: typeof requested === 'string' ? requested.slice(0, 50) : null },
    },
  })
}

const namedMethods: ReadonlySet<string> = new Set(['tools/call', 'tasks/get', 'tasks/update', 'tasks/cancel'])

function requireSame(header: string | string[] | undefined, value: string, name: string): void {
  if (header !== value) throw new RpcError('headerMismatch', `The header ${name} does not match the body`, { status: 400 })
}

/** Names that a header cannot have as they are come in base64. */
function decoded(header: string | string[] | undefined): string | string[] | undefined {
  const [, base64] = (typeof header === 'string' && /^=\?base64\?([A-Za-z0-9+/=]*)\?=$/.exec(header)) || []
  return base64 === undefined ? header : Buffer.from(base64, 'base64').toString()
}

export function objectOf(value: Json | undefined): JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? value : {}
}
