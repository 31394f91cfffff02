/**
 * Creates, lists, rotates and revokes keys for one manager: a tenant, which manages its own keys, or the installation, which manages all. The route
 * and the command line use it; the command line opens the database itself, so access to the database is the only permission that it needs.
 */
import type { CreateKey, Key, ListKeys, NewKey, RotatedKey, RotateKey } from '@rivulet/contract/keys'
import { RivuletError } from '@rivulet/protocol'
import { type Auditor, insertAudit } from '../store/access/audit.ts'
import { insertKey, type KeyRow, listKeys, revokeKey, rotateKey } from '../store/access/keys.ts'
import { type Database, openDatabase, sqlStateOf } from '../store/connection/database.ts'
import { defaultTenant, everyTenant, type Tenant } from '../store/connection/tenant.ts'
import { createKeyText, digestOfSecret } from './key-secret.ts'

export { readKeyPepper } from '../config.ts'

export type Keyring = {
  /** The secret is in this result once, and cannot be read again. */
  create(request: CreateKey): Promise<NewKey>
  list(query: ListKeys): Promise<{ data: Key[]; nextCursor: string | null }>
  revoke(id: string): Promise<Key>
  /** Both keys are valid during the overlap. */
  rotate(id: string, request: RotateKey): Promise<RotatedKey>
}

export type KeyringDeps = {
  /** Acts for all tenants. */
  db: Database
  manager: Tenant
  /** Throws if no key is known, because only new secrets need one. */
  pepper: () => string
  /** Live keys of one tenant; null: no limit. */
  maxKeys: number | null
  audit: Auditor
}

export function createKeyring({ db, manager, pepper, maxKeys, audit }: KeyringDeps): Keyring {
  return { create, list, revoke, rotate }

  async function create({ tenant, name, scopes, expiresInSeconds, allTenants = false, agents }: CreateKey): Promise<NewKey> {
    const { secret, digest } = newSecret()
    const terms = {
      tenant: tenant ?? (manager === everyTenant ? defaultTenant : manager),
      ...{ name, scopes: [...new Set(scopes)], allTenants, agents: agents ? [...new Set(agents)] : null },
      expiresInMs: expiresInSeconds === undefined ? null : expiresInSeconds * 1_000,
    }
    const row = await insertKey(db, digest, terms, maxKeys, audit)
    if (row === 'too many') throw tooManyKeys()
    return { key: toKey(row), secret }
  }

  async function list(query: ListKeys): Promise<{ data: Key[]; nextCursor: string | null }> {
    const rows = await listKeys(db, manager, { ...query, limit: query.limit + 1 })
    if (!rows) throw new RivuletError('bad_cursor', 'cursor must be the nextCursor of a page')
    const shown = rows.slice(0, query.limit)
    return { data: shown.map(toKey), nextCursor: rows.length > shown.length ? (shown.at(-1)?.id ?? null) : null }
  }

  async function revoke(id: string): Promise<Key> {
    const row = await revokeKey(db, manager, id, audit)
    if (!row) throw keyNotFound()
    return toKey(row)
  }

  async function rotate(id: string, { overlapSeconds }: RotateKey): Promise<RotatedKey> {
    const { secret, digest } = newSecret()
    const rotation = await rotateKey(db, manager, id, { ...digest, overlapMs: overlapSeconds * 1_000, maxKeys }, audit)
    switch (rotation.at) {
      case 'rotated':
        return { key: toKey(rotation.key), secret, replaced: toKey(rotation.replaced) }
      case 'unknown':
        throw keyNotFound()
      case 'ended':
        throw new RivuletError('bad_request', 'This key is revoked or expired: create a new one')
      case 'replaced':
        throw new RivuletError('bad_request', 'This key was rotated before: rotate the key that its replacedBy names')
      case 'too many':
        throw tooManyKeys()
      default:
        throw rotation satisfies never
    }
  }

  function tooManyKeys(): RivuletError {
    return new RivuletError(
      'quota_exceeded',
      `${maxKeys} keys of this tenant are valid, the maximum (MAX_KEYS_PER_TENANT); revoke one first`,
    )
  }

  function newSecret() {
    const { id, secret, text } = createKeyText()
    return { secret: text, digest: { id, digest: digestOfSecret(pepper(), secret).toString('hex') } }
  }
}

/** The keyring of the installation, for a program that has the database and no API. */
export function openKeyring(databaseUrl: string, pepper: () => string): Keyring & { close(): Promise<void> } {
  const { db, close } = openDatabase({ url: databaseUrl, onError: () => {} })
  const audit: Auditor = (tx, tenant, change) => insertAudit(tx, tenant, { via: 'database' }, change)
  const keyring = createKeyring({ db, manager: everyTenant, pepper, maxKeys: null, audit })
  return {
    create: request => migrated(keyring.create(request)),
    list: query => migrated(keyring.list(query)),
    revoke: id => migrated(keyring.revoke(id)),
    rotate: (id, request) => migrated(keyring.rotate(id, request)),
    close,
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

/** The same error for an unknown key and for a key of another tenant. */
function keyNotFound(): RivuletError {
  return new RivuletError('not_found', 'No key has this id')
}

function toKey({ digest: _, createdAt, expiresAt, revokedAt, lastUsedAt, replacedBy, allTenants, agents, ...row }: KeyRow): Key {
  return {
    ...{ ...row, createdAt: createdAt.toISOString() },
    ...(expiresAt && { expiresAt: expiresAt.toISOString() }),
    ...(revokedAt && { revokedAt: revokedAt.toISOString() }),
    ...(lastUsedAt && { lastUsedAt: lastUsedAt.toISOString() }),
    ...(replacedBy !== null && { replacedBy }),
    ...(allTenants && { allTenants }),
    ...(agents && { agents }),
  }
}
