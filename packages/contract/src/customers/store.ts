/** Memory above the task: values by scope and key, for one customer, one agent, or the tenant. */
import { agentNameSchema, headLimits, jsonObjectSchema, jsonSchema, maxPageSize, maxStoreKey } from '@rivulet/protocol'
import { z } from 'zod'
import { concurrencyKeySchema } from '../limits.ts'
import { nothing, pageOf, route } from '../route.ts'
import { storedValueSchema, storeKeySchema } from './stored-value.ts'

export * from './stored-value.ts'

const tag = 'store'
const reading = { tag, scope: 'tasks:read', ofAgents: true } as const
const writing = { tag, scope: 'tasks:write', ofAgents: true } as const

/** `tenant`, `agent:<name>`, or `customer:<key>` for the tasks that have the key as their `concurrencyKey`. */
export const storeScopeSchema = z.union(
  [
    z.literal('tenant'),
    z.templateLiteral(['agent:', agentNameSchema]),
    z
      .string()
      .startsWith('customer:')
      .max(headLimits.paramLength)
      .refine(scope => concurrencyKeySchema.safeParse(scope.slice('customer:'.length)).success),
  ],
  { error: 'Use tenant, agent:<name> or customer:<key>' },
)

export const listStoreQuery = z.strictObject({
  prefix: z.string().max(maxStoreKey).optional(),
  /** Finds values with these words in their texts and names, and keys that contain it. */
  q: z.string().min(1).max(200).optional(),
  limit: z.coerce.number().int().min(1).max(maxPageSize).default(20),
  cursor: storeKeySchema.optional(),
})

const ofScope = z.object({ scope: storeScopeSchema })
const ofKey = ofScope.extend({ key: storeKeySchema })
const conditions = z.looseObject({ 'if-match': z.string().optional(), 'if-none-match': z.string().optional() })
const note = 'With an `ETag`; `If-Match` names the version that the caller knows'

export const listStore = route('GET /v1/store/:scope', {
  ...reading,
  params: ofScope,
  query: listStoreQuery,
  returns: { 200: pageOf(storedValueSchema) },
  doc: 'Lists the values of a scope by their keys',
})

export const getStored = route('GET /v1/store/:scope/:key', {
  ...reading,
  params: ofKey,
  returns: { 200: storedValueSchema },
  errors: ['not_found'],
  doc: 'Returns a value, with an ETag',
})

export const putStored = route('PUT /v1/store/:scope/:key', {
  ...writing,
  params: ofKey,
  headers: conditions,
  body: z.strictObject({ value: jsonSchema }),
  returns: { 200: storedValueSchema, 201: storedValueSchema },
  audited: 'store.set',
  errors: ['precondition_failed', 'value_too_large', 'store_full'],
  doc: 'Stores a value',
  note: `${note}, and \`If-None-Match: *\` stores only the first value`,
})

export const patchStored = route('PATCH /v1/store/:scope/:key', {
  ...writing,
  params: ofKey,
  headers: conditions,
  body: z.strictObject({ value: jsonObjectSchema }),
  returns: { 200: storedValueSchema, 201: storedValueSchema },
  audited: 'store.set',
  errors: ['precondition_failed', 'value_too_large', 'store_full'],
  doc: 'Merges an object into a value (RFC 7396)',
  note,
})

export const deleteStored = route('DELETE /v1/store/:scope/:key', {
  ...writing,
  params: ofKey,
  headers: conditions,
  returns: { 204: nothing },
  audited: 'store.removed',
  errors: ['not_found', 'precondition_failed'],
  doc: 'Deletes a value',
})

export const clearStore = route('DELETE /v1/store/:scope', {
  ...writing,
  params: ofScope,
  returns: { 204: nothing },
  audited: 'store.removed',
  doc: 'Deletes all values of a scope',
})

export type StoreScope = z.output<typeof storeScopeSchema>
export type ListStore = z.output<typeof listStoreQuery>
