/**
 * Finds the principal of a key. Keys are compared as digests in constant time; a malformed, unknown, revoked or expired key costs the same work
 * and gets the same response. Results, also negative ones, are cached for a few seconds, so that ten thousand viewers that reconnect at once
 * cause one query. Lookups are batched, so a flood of wrong keys uses one connection at most.
 */
import { createHash, timingSafeEqual } from 'node:crypto'
import { type Scope, scopes } from '@rivulet/contract/scopes'
import { LRUCache } from 'lru-cache'
import { changeDigest, type FoundKey, findKeys, liveKeys, noteKeyUse } from '../store/access/keys.ts'
import { createBatcher } from '../store/connection/batcher.ts'
import type { Database } from '../store/connection/database.ts'
import { defaultTenant } from '../store/connection/tenant.ts'
import { digestOfSecret, parseKeyText } from './key-secret.ts'
import { type Principal, rootKeyId, workerKeyId } from './principal.ts'

/** How long a key that was found is believed. Together with a round of the sweep it stays below the 30 s that a revocation may take. */
export const believedMs = 15_000
const maxBelieved = 10_000
/** How long, and of how many texts, it is believed that they are no key. A new key is never among them, because it cannot be guessed. */
const refusedMs = 15_000
const maxRefused = 10_000
/** Keys that are looked up in one query. */
const maxAsked = 100

export type KeyCheck = {
  /** Null for everything that is no valid key. */
  check(text: string): Promise<Principal | null>
  /** The holder of the key with this id: for what the key has signed. */
  holder(id: string): Promise<Principal | null>
  /** Which of these keys are still good, asked of Postgres itself. The others are forgotten. */
  stillLive(ids: readonly string[]): Promise<ReadonlySet<string>>
  /** After a change of this key: the next request with it asks Postgres. */
  forget(id: string): void
}

type KeyCheckDeps = {
  /** Acts for all tenants. */
  db: Database
  /** Keys of the environment. */
  key?: string | undefined
  workerKey?: string | undefined
  /** Without it there are no keys but those of the environment. */
  pepper?: string | undefined
  /** The pepper before it: keys of it are valid, and each gets a digest of the current pepper when it is used. */
  oldPepper?: string | undefined
}

export function createKeyCheck({ db, key, workerKey, pepper, oldPepper }: KeyCheckDeps): KeyCheck {
  const roots = [...(key ? [rootKey(rootKeyId, key, scopes)] : []), ...(workerKey ? [rootKey(workerKeyId, workerKey, ['worker'])] : [])]
  const believed = new LRUCache<string, Principal>({ max: maxBelieved, ttl: believedMs })
  const asking = new Map<string, Promise<Principal | null>>()
  const refused = new LRUCache<string, true>({ max: maxRefused, ttl: refusedMs })
  const findKey = createBatcher(maxAsked, (ids: readonly string[]) => findKeys(db, ids))
  /** Raised when a key changes: a lookup that began before may have read the key as it was. */
  let changes = 0
  return { check, holder, stillLive, forget }

  async function check(text: string): Promise<Principal | null> {
    const given = sha256(text)
    const [root] = roots.filter(({ digest }) => timingSafeEqual(digest, given))
    if (root) return root.principal
    if (!pepper) return null
    return believe(given.toString('hex'), () => lookUp(text, pepper))
  }

  async function holder(id: string): Promise<Principal | null> {
    const root = roots.find(({ principal }) => principal.key === id)
    if (root) return root.principal
    return pepper ? believe(id, async () => principalOf(await findKey(id))) : null
  }

  async function stillLive(ids: readonly string[]): Promise<ReadonlySet<string>> {
    const stored = ids.filter(id => !roots.some(({ principal }) => principal.key === id))
    const live = new Set([...ids.filter(id => !stored.includes(id)), ...(stored.length > 0 ? await liveKeys(db, stored) : [])])
    forgetThose(id => ids.includes(id) && !live.has(id))
    return live
  }

  function forget(id: string): void {
    changes += 1
    asking.clear()
    forgetThose(found => found === id)
  }

  function forgetThose(isMeant: (id: string) => boolean): void {
    for (const [name, { key: found }] of believed) if (found && isMeant(found)) believed.delete(name)
  }

  /** What is no key is kept apart: made-up ones push out no others than made-up ones. */
  async function believe(name: string, find: () => Promise<Principal | null>): Promise<Principal | null> {
    if (refused.get(name)) return null
    const known = believed.get(name)
    if (known) return unexpired(known)
    const asked = asking.get(name) ?? ask(name, find)
    asking.set(name, asked)
    return asked
  }

  async function ask(name: string, find: () => Promise<Principal | null>): Promise<Principal | null> {
    const before = changes
    try {
      const found = await find()
      if (found && changes === before) believed.set(name, found)
      if (!found) refused.set(name, true)
      return found
    } finally {
      asking.delete(name)
    }
  }

  /** What is malformed is looked up all the same, under an id that no key has. */
  async function lookUp(text: string, secretPepper: string): Promise<Principal | null> {
    const { id, secret } = parseKeyText(text) ?? { id: 'none', secret: text }
    const digest = digestOfSecret(secretPepper, secret)
    const oldDigest = digestOfSecret(oldPepper ?? secretPepper, secret)
    const row = await findKey(id)
    const stored = row ? Buffer.from(row.digest, 'hex') : Buffer.alloc(digest.length)
    const [isSame, isOld] = [timingSafeEqual(digest, stored), timingSafeEqual(oldDigest, stored)]
    const found = isSame || isOld ? principalOf(row) : null
    if (found && !isSame) changeDigest(db, id, { from: oldDigest.toString('hex'), to: digest.toString('hex') }).catch(() => {})
    if (found) noteKeyUse(db, id).catch(() => {})
    return found
  }
}

function principalOf(row: FoundKey | undefined): Principal | null {
  if (!row?.isLive) return null
  const { tenant, scopes: granted, id: key, expiresAt, expiresInMs } = row
  const end = expiresInMs === null ? {} : { liveUntil: performance.now() + expiresInMs }
  const isOfAll = granted.includes('worker') || granted.includes('metrics')
  return {
    tenant,
    scopes: granted,
    key,
    expiresAt,
    ...end,
    isRoot: false,
    ...(row.agents && { agents: row.agents }),
    ...(isOfAll && { allTenants: row.allTenants }),
  }
}

/** A principal that is remembered ends with its key. */
function unexpired(principal: Principal): Principal | null {
  return principal.liveUntil !== undefined && principal.liveUntil <= performance.now() ? null : principal
}

function rootKey(id: string, text: string, granted: readonly Scope[]): { digest: Buffer; principal: Principal } {
  return {
    digest: sha256(text),
    principal: { tenant: defaultTenant, scopes: granted, key: id, expiresAt: null, isRoot: true, allTenants: true },
  }
}

function sha256(data: string): Buffer {
  return createHash('sha256').update(data).digest()
}
