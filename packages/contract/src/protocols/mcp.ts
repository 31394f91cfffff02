/** MCP: every method is one call. */
import { route } from '../route.ts'
import { notificationReceived, rpcRequest, rpcResponse } from './json-rpc.ts'

export const callMcp = route('POST /mcp', {
  ...{ tag: 'mcp', scope: 'tasks:write', ofAgents: true },
  body: rpcRequest,
  returns: { 200: rpcResponse, 202: notificationReceived },
  idempotencyKey: 'kept',
  errors: ['too_many_turns', 'quota_exceeded', 'too_many_streams', 'overloaded'],
  doc: 'Calls a method of MCP as JSON-RPC; some are responded to with a stream',
  note: 'Needs `tasks:read`, too',
})
