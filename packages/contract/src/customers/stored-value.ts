/** A value of the store, which is memory above the tasks of a customer, an agent or a tenant; and the calls by which a turn uses it. */
import { jsonObjectSchema, jsonSchema, maxPageSize, maxStoreKey } from '@rivulet/protocol'
import { z } from 'zod'

/** A URL has no part `.` or `..`. */
export const storeKeySchema = z
  .string()
  .min(1)
  .max(maxStoreKey)
  .regex(/^(?!\.{1,2}$)/, 'Use a key other than . and ..')

export const storedValueSchema = z.object({
  scope: z.string(),
  key: z.string(),
  value: jsonSchema,
  /** Grows with each change of the scope, so that a version names one value. */
  version: z.int().min(1),
  updatedAt: z.iso.datetime(),
})

/** Where a turn's values are: those of its customer (the `concurrencyKey` of its task), of its agent, or of its tenant. */
export const turnScopeSchema = z.enum(['customer', 'agent', 'tenant'])

const place = { scope: turnScopeSchema, key: storeKeySchema }
const change = {
  /** The version that the turn knows; 0 before the first value. Absent: any. */
  version: z.int().min(0).optional(),
  /** An id of the change, the same when it is repeated because no response came. */
  change: z.string().min(1).max(100).optional(),
}
const search = { prefix: z.string().max(maxStoreKey).optional(), q: z.string().min(1).max(200).optional() }

export const storeCallSchema = z.discriminatedUnion('action', [
  z.strictObject({ action: z.literal('get'), ...place }),
  z.strictObject({ action: z.literal('put'), ...place, value: jsonSchema, ...change }),
  z.strictObject({ action: z.literal('patch'), ...place, value: jsonObjectSchema, ...change }),
  z.strictObject({ action: z.literal('remove'), ...place, version: change.version }),
  z.strictObject({
    action: z.literal('list'),
    scope: turnScopeSchema,
    ...search,
    limit: z.int().min(1).max(maxPageSize).default(20),
    cursor: storeKeySchema.optional(),
  }),
])

/** `stored`: the value that is there now, null if there is no value. A list returns a page. */
export const storeCallResult = z.union([
  z.object({ stored: storedValueSchema.nullable() }),
  z.object({ data: z.array(storedValueSchema), nextCursor: storeKeySchema.nullable() }),
])

export type StoredValue = z.output<typeof storedValueSchema>
export type TurnScope = z.output<typeof turnScopeSchema>
export type StoreCall = z.output<typeof storeCallSchema>
export type StoreCallInput = z.input<typeof storeCallSchema>
export type StoreCallResult = z.output<typeof storeCallResult>
