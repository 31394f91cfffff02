/**
 * Checks whether a token was revoked. Results are cached by task and subject for as long as those of keys, so thousands of viewers that
 * reconnect at once cause one query; concurrent lookups share a query.
 */
import { LRUCache } from 'lru-cache'
import type { AuditNote } from '../store/access/audit.ts'
import { revocationsOf, revokeTokens, type TokenHolder } from '../store/access/token-revocations.ts'
import { createBatcher } from '../store/connection/batcher.ts'
import type { Database, DatabaseHandle } from '../store/connection/database.ts'
import type { Readable } from '../store/connection/tenant.ts'
import { believedMs } from './key-check.ts'
import type { TokenClaims } from './token-claims.ts'

const maxBelieved = 10_000
/** Of one query. */
const maxAsked = 1_000

export type TokenRevocations = {
  isRevoked(claims: TokenClaims): Promise<boolean>
  /** Which of these are revoked, asked of Postgres itself. */
  revokedAmong(claims: readonly TokenClaims[]): Promise<ReadonlySet<TokenClaims>>
  /** Of all subjects, where the subject is null. Counts at once in this process. */
  revoke(caller: Readable, holder: TokenHolder, note: AuditNote): Promise<void>
}

/** `db` acts for all tenants. */
export function createTokenRevocations({
  db,
  databaseFor,
}: {
  db: Database
  databaseFor: DatabaseHandle['databaseFor']
}): TokenRevocations {
  const believed = new LRUCache<string, Promise<number | null>>({ max: maxBelieved, ttl: believedMs })
  const find = createBatcher(maxAsked, (holders: readonly TokenHolder[]) => revocationsOf(db, holders))
  return { isRevoked, revokedAmong, revoke }

  async function isRevoked(claims: TokenClaims): Promise<boolean> {
    const name = nameOf(claims)
    const known = believed.get(name)
    if (known) return isBefore(claims, await known)
    const asked = find(claims)
    believed.set(name, asked)
    asked.catch(() => believed.delete(name))
    return isBefore(claims, await asked)
  }

  async function revokedAmong(claims: readonly TokenClaims[]): Promise<ReadonlySet<TokenClaims>> {
    const holders = new Map(claims.map(each => [nameOf(each), each]))
    const names = [...holders.keys()]
    const moments = await Promise.all([...holders.values()].map(find))
    const until = new Map(names.map((name, i) => [name, moments[i] ?? null]))
    return new Set(claims.filter(each => isBefore(each, until.get(nameOf(each)) ?? null)))
  }

  async function revoke(caller: Readable, holder: TokenHolder, note: AuditNote): Promise<void> {
    await databaseFor(caller.tenant).transaction(async tx => {
      await revokeTokens(tx, caller, holder)
      await note(tx)
    })
    believed.clear()
  }
}

function isBefore({ startedAt }: TokenClaims, revokedUntil: number | null): boolean {
  return revokedUntil !== null && startedAt <= revokedUntil
}

function nameOf({ task, subject }: TokenHolder): string {
  return subject === null ? task : `${task} ${subject}`
}
