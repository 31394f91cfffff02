/** What clients of A2A list tasks by, in the params of JSON-RPC or in a query string, and the tokens of the pages. */
import { turnIdSchema } from '@rivulet/protocol'
import { z } from 'zod'
import type { TurnPlace, TurnStage } from '../../store/agents/agent-turns.ts'

const number = z.union([
  z.int().min(0),
  z
    .string()
    .regex(/^\d{1,6}$/, 'A whole number')
    .transform(Number),
])
const truth = z.union([z.boolean(), z.enum(['true', 'false']).transform(text => text === 'true')])
/** The SDKs write an empty text for a field that is absent. */
const optional = z
  .string()
  .max(200)
  .nullish()
  .transform(given => given || undefined)

/** The states of A2A; null for those that no turn has. */
export const stageOf = {
  TASK_STATE_SUBMITTED: 'queued',
  TASK_STATE_WORKING: 'working',
  TASK_STATE_INPUT_REQUIRED: 'asking',
  TASK_STATE_COMPLETED: 'completed',
  TASK_STATE_FAILED: 'failed',
  TASK_STATE_CANCELED: 'canceled',
  TASK_STATE_AUTH_REQUIRED: null,
  TASK_STATE_REJECTED: null,
} as const satisfies Record<string, TurnStage | null>
type State = keyof typeof stageOf

export const listParams = z
  .object({
    contextId: optional,
    status: optional.refine(given => given === undefined || given === 'TASK_STATE_UNSPECIFIED' || given in stageOf, 'No such state'),
    pageSize: number.refine(size => size >= 1 && size <= 100, 'A page has 1 to 100 tasks').nullish(),
    pageToken: optional.refine(given => given === undefined || parsePageToken(given) !== null, 'No token of a page'),
    historyLength: number.nullish(),
    statusTimestampAfter: optional.refine(given => given === undefined || !Number.isNaN(Date.parse(given)), 'No time'),
    includeArtifacts: truth.nullish(),
  })
  .transform(({ contextId, status, pageSize, pageToken, historyLength, statusTimestampAfter: since, includeArtifacts }) => ({
    contextId,
    state: status && status in stageOf ? (status as State) : undefined,
    since: since === undefined ? undefined : new Date(since),
    after: pageToken === undefined ? null : parsePageToken(pageToken),
    pageSize: pageSize ?? 50,
    historyLength: historyLength ?? undefined,
    includeArtifacts: includeArtifacts ?? false,
  }))

export type ListParams = z.output<typeof listParams>

export function formatPageToken({ at, id }: TurnPlace): string {
  return `${at.getTime()}.${id}`
}

function parsePageToken(text: string): TurnPlace | null {
  const [, time = '', id = ''] = /^(\d{1,15})\.(.+)$/.exec(text) ?? []
  const { data } = turnIdSchema.safeParse(id)
  return data === undefined ? null : { at: new Date(Number(time)), id: data }
}
