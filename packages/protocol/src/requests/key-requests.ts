/** The requests that manage keys, and their responses. The secret is in a response once, and nowhere else. */
import { z } from 'zod'
import { agentNameSchema, nameSchema } from '../entities/ids.ts'
import { keyIdSchema, keySchema, scopeSchema } from '../entities/key.ts'
import { pageLimit, wholeUpTo } from './requests.ts'

const daySeconds = 86_400

export const createKeyBody = z
  .strictObject({
    name: z.string().max(200).default(''),
    scopes: z.array(scopeSchema).min(1).max(scopeSchema.options.length).default(['tasks:read', 'tasks:write']),
    tenant: nameSchema.optional(),
    expiresInSeconds: z
      .int()
      .min(1)
      .max(3_650 * daySeconds)
      .optional(),
    allTenants: z.boolean().optional(),
    agents: z.array(agentNameSchema).min(1).max(100).optional(),
  })
  .superRefine(({ scopes, tenant, allTenants, agents }, context) => {
    const reject = (path: string, message: string) => context.addIssue({ code: 'custom', path: [path], message })
    const isOfAll = scopes.includes('worker') || scopes.includes('metrics')
    if (allTenants && !isOfAll) reject('allTenants', 'Only a key with the scope worker or metrics can be valid for all tenants')
    if (agents && scopes.includes('admin'))
      reject('agents', 'A key with the scope admin cannot be limited to agents, because it manages all keys')
    if (allTenants && tenant !== undefined) reject('allTenants', 'Use either tenant or allTenants')
  })

export const rotateKeyBody = z.strictObject({ overlapSeconds: wholeUpTo(30 * daySeconds).default(daySeconds) })

export const listKeysQuery = z.strictObject({ tenant: nameSchema.optional(), limit: pageLimit, cursor: keyIdSchema.optional() })

export const keyResponse = z.object({ key: keySchema })
export const newKeyResponse = z.object({ key: keySchema, secret: z.string() })
export const rotatedKeyResponse = newKeyResponse.extend({ replaced: keySchema })

export type CreateKey = z.output<typeof createKeyBody>
export type RotateKey = z.output<typeof rotateKeyBody>
export type ListKeys = z.output<typeof listKeysQuery>
export type NewKey = z.output<typeof newKeyResponse>
export type RotatedKey = z.output<typeof rotatedKeyResponse>

export type CreateKeyInput = z.input<typeof createKeyBody>
export type RotateKeyInput = z.input<typeof rotateKeyBody>
