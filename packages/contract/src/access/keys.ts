/** The keys of a tenant, and the caller itself. A secret is in the response that creates it, and in no other. */
import { agentNameSchema, nameSchema } from '@rivulet/protocol'
import { z } from 'zod'
import { pageOf, route } from '../route.ts'
import { pageLimit, wholeUpTo } from '../values.ts'
import { scopeSchema } from './scopes.ts'

export const keyIdSchema = z.string().regex(/^[0-9a-f]{16}$/, 'The id of a key has 16 characters of 0-9 and a-f')
const time = z.iso.datetime()

export const keySchema = z.object({
  id: keyIdSchema,
  tenant: nameSchema,
  name: z.string(),
  scopes: z.array(scopeSchema),
  createdAt: time,
  expiresAt: time.optional(),
  revokedAt: time.optional(),
  lastUsedAt: time.optional(),
  /** The key that a rotation created in place of this one. */
  replacedBy: keyIdSchema.optional(),
  /** Only with the scopes `worker` and `metrics`: the key is valid for all tenants. */
  allTenants: z.boolean().optional(),
  /** The key is valid only for these agents and their tasks. */
  agents: z.array(agentNameSchema).optional(),
})

/** For whom the API takes a caller. Without `key`, the API requires none. */
export const callerSchema = z.object({
  tenant: nameSchema,
  scopes: z.array(scopeSchema),
  key: z.string().optional(),
  expiresAt: time.optional(),
  /** The key is limited to these agents. */
  agents: z.array(agentNameSchema).optional(),
})

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

const tag = 'keys'
const administering = { tag, scope: 'admin' } as const
const params = z.object({ id: keyIdSchema })

export const createKey = route('POST /v1/keys', {
  ...administering,
  body: createKeyBody,
  returns: { 201: newKeyResponse },
  idempotencyKey: 'rejected',
  audited: 'key.created',
  errors: ['quota_exceeded'],
  doc: 'Creates a key and returns it, once',
  note: 'The secret is the key itself, and is in no other response',
})

export const listKeys = route('GET /v1/keys', {
  ...administering,
  query: listKeysQuery,
  returns: { 200: pageOf(keySchema) },
  errors: ['bad_cursor'],
  doc: 'Lists keys, the oldest first, also revoked and expired keys',
})

export const revokeKey = route('DELETE /v1/keys/:id', {
  ...administering,
  params,
  returns: { 200: keyResponse },
  audited: 'key.revoked',
  errors: ['not_found'],
  doc: 'Revokes a key',
  note: 'The same for a key that was revoked before',
})

export const rotateKey = route('POST /v1/keys/:id/rotate', {
  ...administering,
  params,
  body: rotateKeyBody.nullish(),
  returns: { 201: rotatedKeyResponse },
  idempotencyKey: 'rejected',
  audited: 'key.rotated',
  errors: ['not_found', 'quota_exceeded'],
  doc: 'Creates a key with the terms of an old one, and sets the end of the old one',
  note: 'The new key, and the old one with its new end',
})

export const whoami = route('GET /v1/whoami', {
  tag,
  scope: 'tasks:read',
  ofAgents: true,
  returns: { 200: z.object({ caller: callerSchema }) },
  doc: 'Returns the caller and its permissions',
})

export type Key = z.output<typeof keySchema>
export type Caller = z.output<typeof callerSchema>

export type CreateKey = z.output<typeof createKeyBody>
export type RotateKey = z.output<typeof rotateKeyBody>
export type ListKeys = z.output<typeof listKeysQuery>
export type NewKey = z.output<typeof newKeyResponse>
export type RotatedKey = z.output<typeof rotatedKeyResponse>
export type CreateKeyInput = z.input<typeof createKeyBody>
export type RotateKeyInput = z.input<typeof rotateKeyBody>
