/**
 * Whose key this is. Keys are compared as digests in constant time; one that is malformed, unknown, revoked or expired costs the same work and
 * gets the same answer. What was found is believed for a few seconds, so that ten thousand viewers who come back at once ask Postgres once.
 */
import { createHash, timingSafeEqual } from 'node:crypto'
import { LRUCache } from 'lru-cache'
import type { Database } from '../store/database.ts'
import { findKey, liveKeys, noteKeyUse } from '../store/keys.ts'
import { digestOfSecret, parseKeyText } from './key-secret.ts'
import { defaultTenant, type Principal, type Scope, scopes } from './principal.ts'

/** How long a key that was found is believed. Together with a round of the sweep it stays below the 30 s that a revocation may take. */
export const believedMs = 15_000
const maxBelieved = 10_000

export type KeyCheck = {
  /** Null for everything that is no valid key. */
  check(text: string): Promise<Principal | null>
  /** The holder of the key with this id: for what the key has signed. */
  holder(id: string): Promise<Principal | null>
  /** Which of these keys are still good, asked of Postgres itself. The others are forgotten. */
  stillLive(ids: readonly string[]): Promise<ReadonlySet<string>>
}

export type KeyCheckDeps = {
  /** Acts for all tenants. */
  db: Database
  /** Keys of the environment. */
  key?: string | undefined
  workerKey?: string | undefined
  /** Without it there are no keys but those of the environment. */
  pepper?: string | undefined
}

export function createKeyCheck({ db, key, workerKey, pepper }: KeyCheckDeps): KeyCheck {
  const roots = [...(key ? [rootKey(key, scopes)] : []), ...(workerKey ? [rootKey(workerKey, ['worker'])] : [])]
  const believed = new LRUCache<string, Promise<Principal | null>>({ max: maxBelieved, ttl: believedMs })
  return { check, holder, stillLive }

  async function check(text: string): Promise<Principal | null> {
    const given = sha256(text)
    const [root] = roots.filter(({ digest }) => timingSafeEqual(digest, given))
    if (root) return root.principal
    if (!pepper) return null
    return believe(given.toString('hex'), () => lookUp(text, pepper))
  }

  async function holder(id: string): Promise<Principal | null> {
    const root = roots.find(({ principal }) => principal.key === id)
    return root ? root.principal : believe(id, async () => principalOf(await findKey(db, id)))
  }

  async function stillLive(ids: readonly string[]): Promise<ReadonlySet<string>> {
    const stored = ids.filter(id => !roots.some(({ principal }) => principal.key === id))
    const live = new Set([...ids.filter(id => !stored.includes(id)), ...(stored.length > 0 ? await liveKeys(db, stored) : [])])
    for (const [digest, principal] of believed) {
      const found = await principal.catch(() => null)
      if (found?.key && ids.includes(found.key) && !live.has(found.key)) believed.delete(digest)
    }
    return live
  }

  /** Only what is valid is kept: whoever makes up keys does not fill the memory. */
  async function believe(name: string, find: () => Promise<Principal | null>): Promise<Principal | null> {
    const known = believed.get(name)
    if (known) return unexpired(await known)
    const asked = find()
    believed.set(name, asked)
    const found = await asked.catch(error => {
      believed.delete(name)
      throw error
    })
    if (!found) believed.delete(name)
    return found
  }

  /** What is malformed is looked up all the same, under an id that no key has. */
  async function lookUp(text: string, secretPepper: string): Promise<Principal | null> {
    const { id, secret } = parseKeyText(text) ?? { id: 'none', secret: text }
    const digest = digestOfSecret(secretPepper, secret)
    const row = await findKey(db, id)
    const isSame = timingSafeEqual(digest, row ? Buffer.from(row.digest, 'hex') : Buffer.alloc(digest.length))
    const found = isSame ? principalOf(row) : null
    if (found) noteKeyUse(db, id).catch(() => {})
    return found
  }
}

function principalOf(row: Awaited<ReturnType<typeof findKey>>): Principal | null {
  if (!row || row.revokedAt) return null
  return unexpired({ tenant: row.tenant, scopes: row.scopes, key: row.id, expiresAt: row.expiresAt, isRoot: false })
}

function unexpired(principal: Principal | null): Principal | null {
  return principal?.expiresAt && principal.expiresAt.getTime() <= Date.now() ? null : principal
}

/** Its id changes with the key, so what an earlier one has signed is void. */
function rootKey(text: string, granted: readonly Scope[]): { digest: Buffer; principal: Principal } {
  const digest = sha256(text)
  const key = `env-${sha256(digest).toString('hex').slice(0, 16)}`
  return { digest, principal: { tenant: defaultTenant, scopes: granted, key, expiresAt: null, isRoot: true } }
}

function sha256(data: string | Buffer): Buffer {
  return createHash('sha256').update(data).digest()
}
