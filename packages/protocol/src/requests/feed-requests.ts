/** The request that reads the feed. */
import { z } from 'zod'
import { feedEntrySchema, feedEntryTypeSchema } from '../entities/feed-entry.ts'
import { agentNameSchema } from '../entities/ids.ts'
import { parseCursor } from '../events/cursor.ts'
import { pageLimit } from './requests.ts'

/** Of an entry of the feed, or of the audit log. */
export const place = z.string().transform((text, context) => {
  const parsed = parseCursor(text)
  if (parsed) return parsed
  context.addIssue({ code: 'custom', message: 'A place must be <number>-<number>, as the API returns it' })
  return z.NEVER
})

export const feedQuery = z.strictObject({
  /** The last entry that the caller has. `0-0`: before the oldest entry that is kept. */
  after: place.optional(),
  agent: agentNameSchema.optional(),
  /** Several types are separated by commas. */
  types: z
    .string()
    .transform(list => list.split(','))
    .pipe(z.array(feedEntryTypeSchema))
    .optional(),
  limit: pageLimit,
})

export const feedPage = z.object({ data: z.array(feedEntrySchema), next: z.string() })

export type FeedQuery = z.output<typeof feedQuery>
export type FeedPage = z.output<typeof feedPage>
