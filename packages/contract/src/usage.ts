/** What the responses of models used, and what they cost. */
import { maxUsageDays, usageSchema } from '@rivulet/protocol'
import { z } from 'zod'
import { route } from './route.ts'

export const usageGroupings = ['day', 'agent', 'model', 'key', 'tenant'] as const
const usageGroupingSchema = z.enum(usageGroupings)

const sums = {
  usage: usageSchema,
  tokens: z.number().min(0),
  /** In US dollars, of the responses that have a price; null when none has. */
  cost: z.number().nullable(),
  /** Responses without a price: `cost` leaves them out. */
  unpriced: z.int().min(0),
  responses: z.int().min(0),
  turns: z.int().min(0),
}

/** `group`: the day in UTC, or the name of agent, model, concurrency key or tenant; null for responses without one. */
export const usageReportSchema = z.object({
  by: usageGroupingSchema,
  from: z.iso.datetime(),
  to: z.iso.datetime(),
  data: z.array(z.object({ group: z.string().nullable(), ...sums })),
  /** Of all groups, also of those that `data` has no room for. */
  total: z.object(sums),
  /**
   * The stored files. `maxBytes` is the limit of the tenant; null in a report about all tenants. Absent from older servers, and for a key that is
   * limited to agents.
   */
  files: z.object({ count: z.int().min(0), bytes: z.int().min(0), maxBytes: z.int().nullable() }).optional(),
})

const dayMs = 86_400_000

const moment = z
  .union([z.iso.date(), z.iso.datetime({ offset: true })], 'Use a date such as 2026-11-16, or a time such as 2026-11-16T08:00:00Z')
  .transform(given => new Date(given))

/** `from` is included, `to` is not. A date is the beginning of its day in UTC. Default: the 30 days before `to`, and now. */
export const usageQuery = z
  .strictObject({ by: usageGroupingSchema.default('day'), from: moment.optional(), to: moment.optional() })
  .transform(({ by, from, to = new Date() }) => ({ by, from: from ?? new Date(to.getTime() - 30 * dayMs), to }))
  .refine(({ from, to }) => from < to, { path: ['from'], message: 'Must be before to' })
  .refine(({ from, to }) => to.getTime() - from.getTime() <= maxUsageDays * dayMs, {
    path: ['from'],
    message: `Must be at most ${maxUsageDays} days before to`,
  })

export const readUsage = route('GET /v1/usage', {
  tag: 'usage',
  scope: 'tasks:read',
  ofAgents: true,
  query: usageQuery,
  returns: { 200: usageReportSchema },
  errors: ['overloaded'],
  doc: 'Sums the tokens and the cost of the responses of models',
})

export type UsageGrouping = z.output<typeof usageGroupingSchema>
export type UsageReport = z.output<typeof usageReportSchema>
export type UsageQuery = z.output<typeof usageQuery>
