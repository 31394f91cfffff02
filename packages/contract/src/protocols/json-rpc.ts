/** A request and a response of JSON-RPC 2.0, which A2A and MCP use. */
import { jsonObjectSchema } from '@rivulet/protocol'
import { z } from 'zod'

export const rpcRequest = z.object({
  jsonrpc: z.literal('2.0'),
  /** A notification has none. */
  id: z.union([z.string().max(200), z.number()]).optional(),
  method: z.string().max(200),
  params: jsonObjectSchema.optional(),
})

export type RpcRequest = z.output<typeof rpcRequest>

export const rpcResponse = z.looseObject({ jsonrpc: z.literal('2.0') })
export const notificationReceived = z.null().describe('A notification')
