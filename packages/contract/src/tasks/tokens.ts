/** The tokens of a task, for a browser. */
import { maxTokenSeconds, waitIdSchema } from '@rivulet/protocol'
import { z } from 'zod'
import { tokenRightSchema } from '../access/scopes.ts'
import { nothing, route } from '../route.ts'
import { params } from './fields.ts'

const tag = 'tasks'

/** Whom a token is for, in the words of the application that makes it: a user's id, as a rule. */
const tokenSubject = z.string().min(1).max(200)

export const createTokenBody = z.strictObject({
  can: z.union([tokenRightSchema.transform(right => [right]), z.array(tokenRightSchema).min(1).max(tokenRightSchema.options.length)]),
  ttlSeconds: z.int().min(5).max(maxTokenSeconds).default(900),
  /** The right `answer` is for this wait alone. */
  wait: waitIdSchema.optional(),
  subject: tokenSubject.optional(),
})

export const revokeTokensQuery = z.strictObject({ subject: tokenSubject.optional() })
export const tokenResponse = z.object({ token: z.string(), can: z.array(tokenRightSchema), expiresAt: z.iso.datetime() })

export const createToken = route('POST /v1/tasks/:id/tokens', {
  ...{ tag, scope: 'tasks:read' },
  params,
  body: createTokenBody,
  returns: { 201: tokenResponse },
  audited: 'token.created',
  errors: ['task_not_found', 'not_found'],
  doc: 'Creates a token for a task, for a browser',
})

export const revokeTokens = route('DELETE /v1/tasks/:id/tokens', {
  ...{ tag, scope: 'tasks:write' },
  params,
  query: revokeTokensQuery,
  returns: { 204: nothing },
  audited: 'token.revoked',
  errors: ['task_not_found'],
  doc: 'Revokes the tokens of a task that were created before now',
})

export type TaskToken = z.output<typeof tokenResponse>
export type CreateTokenInput = z.input<typeof createTokenBody>
export type RevokeTokensInput = z.input<typeof revokeTokensQuery>
