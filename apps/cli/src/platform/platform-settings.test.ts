import { expect, test } from 'vitest'
import { platformSettings } from './platform-settings.ts'

test.each<[title: string, environment: Record<string, string>, host: string, allowed: string]>([
  ['allows webhooks to this machine, if no other machine can call', {}, '127.0.0.1', 'on'],
  ['rejects them with a root key, because a proxy may stand before it', { RIVULET_KEY: 'the-key-of-this-test' }, '127.0.0.1', 'off'],
  ['rejects them with a pepper', { KEY_PEPPER: 'the-pepper-of-this-test' }, 'localhost', 'off'],
  ['rejects them with a key of workers', { RIVULET_WORKER_KEY: 'the-worker-key-of-this-test' }, '127.0.0.1', 'off'],
  ['rejects them if other machines can call', {}, '0.0.0.0', 'off'],
  ['obeys the setting', { KEY_PEPPER: 'the-pepper-of-this-test', WEBHOOK_ALLOW_PRIVATE: 'on' }, '0.0.0.0', 'on'],
  ['obeys the setting that rejects them', { WEBHOOK_ALLOW_PRIVATE: 'off' }, '127.0.0.1', 'off'],
])('%s', (_, environment, host, allowed) => {
  expect(platformSettings(environment, host).WEBHOOK_ALLOW_PRIVATE).toBe(allowed)
})
