/** A key of the API, as it may be shown: never its secret. */
import { z } from 'zod'
import { agentNameSchema, nameSchema } from './ids.ts'

/** The permissions of a key. `admin` includes all but `worker`, which is for `/internal` alone; `metrics` is for a scraper. */
export const scopes = ['tasks:read', 'tasks:write', 'admin', 'metrics', 'worker'] as const
export const scopeSchema = z.enum(scopes)

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

export type Scope = z.output<typeof scopeSchema>
export type Key = z.output<typeof keySchema>
export type Caller = z.output<typeof callerSchema>
