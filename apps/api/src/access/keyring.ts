/** Creates, lists and revokes keys in the database itself, so access to the database is the only permission it needs. */
import { nameRule, nameSchema, RivuletError } from '@rivulet/protocol'
import { insertKey, type KeyRow, listKeys, revokeKey } from '../store/access/keys.ts'
import { type Scope, scopes } from '../store/access/scopes.ts'
import { openDatabase, sqlStateOf } from '../store/connection/database.ts'
import { defaultTenant } from '../store/connection/tenant.ts'
import { createKeyText, digestOfSecret } from './key-secret.ts'

export { readKeyPepper } from '../config.ts'
export { defaultTenant, type Scope, scopes }

/** A key as it may be shown. Times are ISO 8601. */
export type KeyInfo = {
  id: string
  tenant: string
  name: string
  scopes: Scope[]
  createdAt: string
  expiresAt?: string
  revokedAt?: string
  lastUsedAt?: string
  /** Only with the scope `worker`: for all tenants; and for these agents alone. */
  allTenants?: true
  agents?: string[]
}

export type KeyWish = {
  tenant: string
  name: string
  scopes: Scope[]
  expiresAt?: Date | undefined
  /** For the scope `worker`. Default: for the key's own tenant, and for all agents. */
  allTenants?: boolean | undefined
  agents?: string[] | undefined
}

export type Keyring = {
  /** `key` is shown this once: it cannot be had again. */
  create(wish: KeyWish, pepper: string): Promise<KeyInfo & { key: string }>
  list(): Promise<KeyInfo[]>
  /** Null when there is no such key. */
  revoke(id: string): Promise<KeyInfo | null>
  close(): Promise<void>
}

export function openKeyring(databaseUrl: string): Keyring {
  const { db, close } = openDatabase({ url: databaseUrl, onError: () => {} })
  return { create, list, revoke, close }

  async function create({ tenant, name, scopes: granted, expiresAt, allTenants = false, agents }: KeyWish, pepper: string) {
    if (!nameSchema.safeParse(tenant).success)
      throw new RivuletError('bad_call', `A tenant cannot be named ${JSON.stringify(tenant)}: ${nameRule}`)
    for (const agent of agents ?? [])
      if (!nameSchema.safeParse(agent).success)
        throw new RivuletError('bad_call', `An agent cannot be named ${JSON.stringify(agent)}: ${nameRule}`)
    if ((allTenants || agents) && !granted.includes('worker'))
      throw new RivuletError('bad_call', 'Only a key with the scope worker can be limited to agents or be valid for all tenants')
    const { id, secret, text } = createKeyText()
    const digest = digestOfSecret(pepper, secret).toString('hex')
    const reach = { allTenants, agents: agents ?? null }
    const row = await migrated(insertKey(db, { id, digest, tenant, name, scopes: granted, expiresAt: expiresAt ?? null, ...reach }))
    return { ...toInfo(row), key: text }
  }

  async function list(): Promise<KeyInfo[]> {
    return (await migrated(listKeys(db))).map(toInfo)
  }

  async function revoke(id: string): Promise<KeyInfo | null> {
    const row = await migrated(revokeKey(db, id))
    return row ? toInfo(row) : null
  }
}

async function migrated<T>(work: Promise<T>): Promise<T> {
  try {
    return await work
  } catch (error) {
    // 42P01: there is no such table; 42703: no such column.
    if (/^42(P01|703)$/.test(sqlStateOf(error) ?? ''))
      throw new Error('The database is not up to date: run rivulet migrate first', { cause: error })
    throw error
  }
}

function toInfo({ id, tenant, name, scopes: granted, createdAt, expiresAt, revokedAt, lastUsedAt, allTenants, agents }: KeyRow): KeyInfo {
  return {
    ...{ id, tenant, name, scopes: granted, createdAt: createdAt.toISOString() },
    ...(expiresAt && { expiresAt: expiresAt.toISOString() }),
    ...(revokedAt && { revokedAt: revokedAt.toISOString() }),
    ...(lastUsedAt && { lastUsedAt: lastUsedAt.toISOString() }),
    ...(allTenants && { allTenants }),
    ...(agents && { agents }),
  }
}
