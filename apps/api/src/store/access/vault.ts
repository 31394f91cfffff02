/**
 * Encrypts the secrets of tasks for the database. Each row has a data key of its own, which SECRETS_KEY encrypts: a rotation encrypts the data keys
 * again, and never reads a secret. Both ciphertexts are bound to their tenant, so a row that is moved to another tenant cannot be opened.
 */
import { createCipheriv, createDecipheriv, createHash, hkdfSync, randomBytes } from 'node:crypto'
import type { Secrets } from '@rivulet/contract/fields'
import { RivuletError } from '@rivulet/protocol'
import { like, notLike, or, type SQL, type SQLWrapper, sql } from 'drizzle-orm'
import type { Tenant } from '../connection/tenant.ts'

/** `key` is the name of the key that opens it. */
export type Sealed = { key: string; sealed: string }

export type Vault = {
  /** Throws if this API has no SECRETS_KEY. */
  seal(tenant: Tenant, secrets: Secrets): Sealed
  /** Null if no key of this API opens it, or if it was changed. */
  open(tenant: Tenant, sealed: Sealed): Secrets | null
  /** The same under the current key; null as for `open`. */
  rewrap(tenant: Tenant, sealed: Sealed): Sealed | null
  /** The same for one text, with its key; without a SECRETS_KEY the text itself. */
  sealText(tenant: Tenant, text: string): string
  /** Also opens a text that was stored without a SECRETS_KEY. Null as for `open`. */
  openText(tenant: Tenant, stored: string): string | null
  /** The same text under the current key; null if it is under it already, if no key opens it, and without a SECRETS_KEY. */
  renewText(tenant: Tenant, stored: string): string | null
  /** The name of SECRETS_KEY_OLD. */
  oldKeyName: string | null
  /** Whether this API has a SECRETS_KEY. */
  hasKey: boolean
}

const sealedPrefix = 'sealed:'

/** In SQL: texts that are in the clear, or under the old key. */
export function isStale(text: SQLWrapper, { oldKeyName }: Pick<Vault, 'oldKeyName'>): SQL {
  const isClear = notLike(sql`${text}`, `${sealedPrefix}%`)
  return (oldKeyName === null ? isClear : or(isClear, like(sql`${text}`, `${sealedPrefix}${oldKeyName}:%`))) ?? isClear
}

type Master = { name: string; bytes: Buffer }

export function createVault({ key, oldKey }: { key?: string | undefined; oldKey?: string | undefined }): Vault {
  const current = key === undefined ? null : masterOf(key)
  const old = oldKey === undefined ? null : masterOf(oldKey)
  return { seal, open, rewrap, sealText, openText, renewText, oldKeyName: old?.name ?? null, hasKey: current !== null }

  function seal(tenant: Tenant, secrets: Secrets): Sealed {
    const dataKey = randomBytes(32)
    return wrap(tenant, dataKey, encrypt(dataKey, tenant, Buffer.from(JSON.stringify(secrets))))
  }

  function open(tenant: Tenant, sealed: Sealed): Secrets | null {
    const opened = unwrap(tenant, sealed)
    const plain = opened && decrypt(opened.dataKey, tenant, opened.body)
    return plain && JSON.parse(plain.toString())
  }

  function rewrap(tenant: Tenant, sealed: Sealed): Sealed | null {
    const opened = unwrap(tenant, sealed)
    return opened && wrap(tenant, opened.dataKey, opened.body)
  }

  function sealText(tenant: Tenant, text: string): string {
    return current ? textOf(seal(tenant, { text })) : text
  }

  function openText(tenant: Tenant, stored: string): string | null {
    const sealed = sealedIn(stored)
    return sealed ? (open(tenant, sealed)?.text ?? null) : stored
  }

  function renewText(tenant: Tenant, stored: string): string | null {
    const sealed = sealedIn(stored)
    if (!current || sealed?.key === current.name) return null
    if (!sealed) return sealText(tenant, stored)
    const moved = rewrap(tenant, sealed)
    return moved && textOf(moved)
  }

  function wrap(tenant: Tenant, dataKey: Buffer, body: string): Sealed {
    if (!current) throw new RivuletError('bad_request', 'This API has no SECRETS_KEY, so it cannot store secrets')
    return { key: current.name, sealed: `${encrypt(current.bytes, tenant, dataKey)}.${body}` }
  }

  function unwrap(tenant: Tenant, { key: name, sealed }: Sealed): { dataKey: Buffer; body: string } | null {
    const master = [current, old].find(known => known?.name === name)
    const [wrapped = '', body = ''] = sealed.split('.')
    const dataKey = master ? decrypt(master.bytes, tenant, wrapped) : null
    return dataKey && { dataKey, body }
  }
}

function textOf({ key, sealed }: Sealed): string {
  return `${sealedPrefix}${key}:${sealed}`
}

function sealedIn(stored: string): Sealed | null {
  const [, key, sealed] = stored.startsWith(sealedPrefix) ? stored.split(':') : []
  return key !== undefined && sealed !== undefined ? { key, sealed } : null
}

/** The name tells two keys apart, and reveals neither. */
function masterOf(text: string): Master {
  const bytes = Buffer.from(hkdfSync('sha256', text, '', 'rivulet secrets', 32))
  return { bytes, name: createHash('sha256').update('name').update(bytes).digest('hex').slice(0, 16) }
}

const ivBytes = 12
const tagBytes = 16

function encrypt(key: Buffer, tenant: Tenant, plain: Buffer): string {
  const iv = randomBytes(ivBytes)
  const cipher = createCipheriv('aes-256-gcm', key, iv).setAAD(Buffer.from(tenant))
  return Buffer.concat([iv, cipher.update(plain), cipher.final(), cipher.getAuthTag()]).toString('base64url')
}

/** Null for a text that was changed, or that was encrypted for another tenant. */
function decrypt(key: Buffer, tenant: Tenant, text: string): Buffer | null {
  const bytes = Buffer.from(text, 'base64url')
  try {
    const decipher = createDecipheriv('aes-256-gcm', key, bytes.subarray(0, ivBytes), { authTagLength: tagBytes })
    decipher.setAAD(Buffer.from(tenant)).setAuthTag(bytes.subarray(-tagBytes))
    return Buffer.concat([decipher.update(bytes.subarray(ivBytes, -tagBytes)), decipher.final()])
  } catch {
    return null
  }
}
