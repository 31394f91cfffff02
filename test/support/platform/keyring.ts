/** Keys for tests, made in the database itself. */
import { openKeyring } from '@rivulet/api/keys'
import type { CreateKey, Key } from '@rivulet/contract/keys'

export const pepper = 'a pepper that is long enough for this test'

/** `key` is its text. */
export type TestKey = { id: string; key: string }

export type TestKeyring = {
  create(request: Omit<CreateKey, 'name'>, pepperOfKey?: string): Promise<TestKey>
  revoke(id: string): Promise<Key>
  close(): Promise<void>
}

export function openTestKeyring(databaseUrl: string): TestKeyring {
  let current = pepper
  const { create, revoke, close } = openKeyring(databaseUrl, () => current)
  return {
    async create(request, pepperOfKey = pepper) {
      current = pepperOfKey
      const { key, secret } = await create({ name: 'test', ...request })
      return { id: key.id, key: secret }
    },
    revoke,
    close,
  }
}
