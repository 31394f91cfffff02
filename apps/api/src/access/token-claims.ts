/** The content of a token. Its holder can read all of it, so nothing in it is secret or derived from a secret. */
import { tokenRightSchema } from '@rivulet/contract/scopes'
import { z } from 'zod'

export const claimsSchema = z.object({
  tenant: z.string(),
  task: z.string(),
  can: z.array(tokenRightSchema),
  /** The id of the key that it was made with; null where no key is asked for. */
  key: z.string().nullable(),
  /** Random; the same in every token that follows the first one. */
  session: z.string(),
  /** Whom it was made for, in the words of the key's owner. */
  subject: z.string().nullable(),
  /** Absent: the right `answer` is for every wait of the task. */
  wait: z.string().optional(),
  /** When the session began, by Postgres' clock, in milliseconds since 1970: a revocation counts for what began before it. */
  startedAt: z.int(),
  /** Of this token, in seconds since 1970. */
  issuedAt: z.int(),
  expiresAt: z.int(),
  /** Of the session: no token of it lives longer. */
  endsAt: z.int(),
})

export type TokenClaims = z.output<typeof claimsSchema>
