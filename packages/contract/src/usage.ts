/** What the responses of models used, and what they cost. */
import { usageQuery, usageReportSchema } from '@rivulet/protocol'
import { route } from './route.ts'

export const readUsage = route('GET /v1/usage', {
  tag: 'usage',
  scope: 'tasks:read',
  ofAgents: true,
  query: usageQuery,
  returns: { 200: usageReportSchema },
  errors: ['overloaded'],
  doc: 'Sums the tokens and the cost of the responses of models',
})
