/** The agents of a tenant, their workers, and how their turns went. */
import {
  activitySchema,
  agentNameSchema,
  agentSchema,
  changeAgentBody,
  errorGroupSchema,
  maxActivityMinutes,
  workerSchema,
  workerVersionSchema,
} from '@rivulet/protocol'
import { z } from 'zod'
import { nothing, route } from './route.ts'

const tag = 'agents'
const reading = { tag, scope: 'tasks:read', ofAgents: true } as const
const administering = { tag, scope: 'admin' } as const
const params = z.object({ name: agentNameSchema })

function minutesQuery(normal: number) {
  const minutes = z
    .string()
    .regex(/^[1-9]\d{0,4}$/, `Use 1 to ${maxActivityMinutes}`)
    .transform(Number)
    .pipe(z.int().max(maxActivityMinutes))
    .default(normal)
  return z.strictObject({ minutes })
}

export const listAgents = route('GET /v1/agents', {
  ...reading,
  returns: { 200: z.object({ data: z.array(agentSchema) }) },
  errors: ['overloaded'],
  doc: 'Lists the agents that a worker has registered',
})

export const readActivity = route('GET /v1/agents/activity', {
  ...reading,
  query: minutesQuery(10),
  returns: { 200: activitySchema },
  errors: ['overloaded'],
  doc: 'Counts the turns that ended in the last minutes',
})

export const changeAgent = route('PATCH /v1/agents/:name', {
  ...administering,
  params,
  body: changeAgentBody,
  returns: { 200: z.object({ agent: agentSchema }) },
  audited: ['agent.resumed', 'agent.paused'],
  errors: ['not_found'],
  doc: 'Pauses or resumes an agent',
})

export const removeAgent = route('DELETE /v1/agents/:name', {
  ...administering,
  params,
  returns: { 204: nothing },
  audited: 'agent.removed',
  errors: ['not_found', 'agent_in_use'],
  doc: 'Removes an agent without workers',
})

export const listWorkers = route('GET /v1/workers', {
  ...reading,
  returns: { 200: z.object({ data: z.array(workerSchema) }) },
  errors: ['overloaded'],
  doc: 'Lists the workers, the latest heartbeat first',
  note: 'At most 200',
})

export const listVersions = route('GET /v1/versions', {
  ...reading,
  returns: { 200: z.object({ data: z.array(workerVersionSchema) }) },
  errors: ['overloaded'],
  doc: 'Lists the versions of the workers, the latest heartbeat first',
  note: 'At most 200',
})

export const groupErrors = route('GET /v1/errors', {
  ...reading,
  query: minutesQuery(1_440),
  returns: { 200: z.object({ data: z.array(errorGroupSchema) }) },
  errors: ['overloaded'],
  doc: 'Groups the turns that failed in the last minutes by their reason, the most frequent first',
  note: 'At most 100',
})
