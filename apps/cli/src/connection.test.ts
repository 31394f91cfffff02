import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { connectionOf } from './connection.ts'
import { noteRunning } from './platform/running-note.ts'

let folder: string
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'rivulet-connection-'))
})
afterEach(() => rmSync(folder, { recursive: true }))

test('the URL is the given one, then that of the environment, then that of the platform in this folder', () => {
  note('http://127.0.0.1:4711')
  const environment = { DATA_DIR: folder }
  expect(connectionOf({}, environment).url).toBe('http://127.0.0.1:4711')
  expect(connectionOf({}, { ...environment, RIVULET_URL: 'http://there' }).url).toBe('http://there')
  expect(connectionOf({}, { ...environment, RIVULET_URL: 'http://first/, http://second' }).url).toBe('http://first')
  expect(connectionOf({ url: 'http://here/' }, { ...environment, RIVULET_URL: 'http://there' }).url).toBe('http://here')
})

test('the key of the workers is not used', () => {
  note('http://127.0.0.1:4711')
  expect(connectionOf({}, { DATA_DIR: folder }).key).toBeUndefined()
})

test.each(['https://rivulet.example', 'http://203.0.113.9:4000', 'nothing'])(
  'a note that names %s, which is not this machine, is ignored',
  url => {
    note(url)
    expect(connectionOf({}, { DATA_DIR: folder }).url).toBe('http://127.0.0.1:4000')
  },
)

function note(url: string): void {
  noteRunning(folder, { pid: process.pid, url, redisUrl: 'redis://127.0.0.1:1', workerKey: 'for workers' })
}
