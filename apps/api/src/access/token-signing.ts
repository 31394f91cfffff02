/**
 * The keys that sign tokens. Each is derived from a random secret of the installation that no token reveals, so a token does not help to guess a
 * key of the environment. The pepper and, for its own tokens, RIVULET_KEY are mixed in: a copy of the database cannot sign, and a token ends with
 * the key or the last pepper that it was signed with. scrypt makes guesses slow for an attacker with a copy of the database.
 */
import { scrypt } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { promisify } from 'node:util'
import type { FastifyBaseLogger } from 'fastify'
import { readSecret } from '../store/access/secrets.ts'
import type { Database } from '../store/connection/database.ts'

/** For tokens that were made with RIVULET_KEY, and for those of stored keys. The first one signs; tokens of all of them are valid. */
export type SigningKeys = Readonly<Record<'root' | 'stored', readonly [Buffer, ...Buffer[]]>>

export type SigningParts = { key?: string | undefined; pepper?: string | undefined; oldPepper?: string | undefined }

/** Waits until Postgres can be asked; null when that is no longer wanted. */
export async function loadSigningKeys(
  { db, logger, ...parts }: SigningParts & { db: Database; logger: FastifyBaseLogger },
  signal: AbortSignal,
): Promise<SigningKeys | null> {
  while (!signal.aborted) {
    try {
      return await deriveSigningKeys(await readSecret(db, 'task tokens'), parts)
    } catch (error) {
      logger.warn({ err: error }, 'could not read the secret that signs tokens; retrying')
      await sleep(1_000, undefined, { signal }).catch(() => {})
    }
  }
  return null
}

export async function deriveSigningKeys(secret: Buffer, { key = '', pepper = '', oldPepper }: SigningParts): Promise<SigningKeys> {
  const old = oldPepper === undefined ? [] : [oldPepper]
  const [root, stored] = await Promise.all([deriveAll(mixed => ['root', mixed, key]), deriveAll(mixed => ['stored', mixed])])
  return { root, stored }

  async function deriveAll(partsFor: (mixed: string) => string[]): Promise<[Buffer, ...Buffer[]]> {
    const [current, ...others] = await Promise.all([derive(partsFor(pepper)), ...old.map(mixed => derive(partsFor(mixed)))])
    return [current, ...others]
  }

  async function derive(parts: readonly string[]): Promise<Buffer> {
    return (await promisify(scrypt)(JSON.stringify(['task tokens', ...parts]), secret, 32)) as Buffer
  }
}
