/** Values of a query or a body that several nouns take. Strict: no value is coerced. */
import { maxMetadataFilters, maxPageSize, maxWaitMs, parseCursor } from '@rivulet/protocol'
import { z } from 'zod'

/** An integer from 0 to `max`. Rejects -0, because JSON would silently change it to 0. */
export function wholeUpTo(max: number) {
  return z
    .int()
    .min(0)
    .max(max)
    .refine(value => !Object.is(value, -0), 'Expected 0 instead of -0')
}

/** A number in a query string: digits only. */
export const digits = z
  .string()
  .regex(/^\d{1,9}$/, 'Use 1 to 9 digits')
  .transform(Number)

/** The index of a message, in an address. */
export const messageIndexSchema = digits

/** The number of a turn, in an address. */
export const turnNumberSchema = z
  .string()
  .regex(/^[1-9]\d{0,8}$/, 'A turn has a number, from 1')
  .transform(Number)

/** How long a request may wait for the end of a turn, in milliseconds: `500ms`, `30s`. */
export const waitSchema = z
  .string()
  .regex(/^\d{1,5}(ms|s)$/, 'Use a time such as 500ms or 30s')
  .transform(given => Number.parseInt(given, 10) * (given.endsWith('ms') ? 1 : 1_000))
  .pipe(z.int().min(1).max(maxWaitMs))

/** `limit` of a list. */
export const pageLimit = digits.pipe(z.int().min(1).max(maxPageSize)).default(maxPageSize)

/** `metadata.<key>=<value>` filters by metadata. Any other unknown name is an error. */
export function withMetadata<T extends z.ZodRawShape>(known: T) {
  return z
    .object(known)
    .catchall(z.string())
    .superRefine((query, context) => {
      const unknown = Object.keys(query).filter(key => !Object.hasOwn(known, key) && !/^metadata\../.test(key))
      for (const key of unknown) context.addIssue({ code: 'custom', path: [key], message: 'Unknown parameter' })
      const filters = Object.keys(query).filter(key => key.startsWith('metadata.'))
      if (filters.length > maxMetadataFilters)
        context.addIssue({ code: 'custom', path: [], message: `At most ${maxMetadataFilters} metadata filters are allowed` })
    })
}

/** The place of an entry in the feed or in the audit log. */
export const place = z.string().transform((text, context) => {
  const parsed = parseCursor(text)
  if (parsed) return parsed
  context.addIssue({ code: 'custom', message: 'A place must be <number>-<number>, as the API returns it' })
  return z.NEVER
})
