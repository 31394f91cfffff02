/** Manages the keys of an installation, with a key that has the scope `admin`. */
import type { CreateKeyInput, Key, NewKey, RotatedKey, RotateKeyInput } from '@rivulet/contract/keys'
import type { CallOptions, Http } from './http/http.ts'
import { pathOf } from './http/path-of.ts'
import { type Page, readField, readJson, readPage, toEntity, toSecret } from './http/responses.ts'

/** At most 100 a page, oldest first. Only the root key may name a `tenant` that is not its own. */
export type KeyQuery = { tenant?: string | undefined; limit?: number | undefined; cursor?: string | undefined }

export type KeyCalls = {
  /** `secret` is the key itself. The API returns it once, so the client does not retry this call. */
  create(body?: CreateKeyInput, options?: CallOptions): Promise<NewKey>
  list(query?: KeyQuery, options?: CallOptions): Promise<Page<Key>>
  revoke(id: string, options?: CallOptions): Promise<Key>
  /** A new key with the same terms. Both are valid for `overlapSeconds`: one day by default. Not retried either. */
  rotate(id: string, body?: RotateKeyInput, options?: CallOptions): Promise<RotatedKey>
}

export function createKeyCalls({ call }: Http): KeyCalls {
  // The API stores no secret, so it cannot repeat the response under an Idempotency-Key.
  const once = { method: 'POST', idempotencyKey: null, retries: 0 } as const
  return {
    create: (body = {}, own) => call({ ...once, path: '/v1/keys', body, ...own, read: readJson(toNew) }),
    list: (query, own) => call({ path: '/v1/keys', query, ...own, read: readPage<Key>('key') }),
    revoke: (id, own) => call({ method: 'DELETE', path: pathOf('keys', id), ...own, read: readField<Key>('key') }),
    rotate: (id, body = {}, own) =>
      call({
        ...{ ...once, path: `${pathOf('keys', id)}/rotate`, body, ...own },
        read: readJson(body => ({ ...toNew(body), replaced: toEntity<Key>(body.replaced, 'key') })),
      }),
  }
}

function toNew({ key, secret }: Record<string, unknown>): NewKey {
  return { key: toEntity<Key>(key, 'key'), secret: toSecret(secret) }
}
