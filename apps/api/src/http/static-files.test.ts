import { mkdtempSync, rmSync, statSync, utimesSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { gunzipSync } from 'node:zlib'
import fastify from 'fastify'
import { beforeEach, expect, onTestFinished, test } from 'vitest'
import { createStaticFiles, sendStatic } from './static-files.ts'

const script = 'let a = 1\n'.repeat(1_000)
let folder: string

beforeEach(() => {
  folder = `${mkdtempSync(join(tmpdir(), 'rivulet-files-'))}/`
  onTestFinished(() => rmSync(folder, { recursive: true }))
  writeFileSync(`${folder}a.js`, script)
  writeFileSync(`${folder}small.css`, 'a {}')
  writeFileSync(`${folder}notes.txt`, 'notes')
})

test('a file is read once, however often and at whatever moment it is asked for', async () => {
  const files = createStaticFiles(folder)
  const found = await Promise.all(Array.from({ length: 50 }, () => files.find('a.js')))
  const again = await files.find('a.js')
  expect(again?.plain.toString()).toBe(script)
  expect(new Set([...found, again].map(file => file?.plain)).size).toBe(1)
  expect(new Set([...found, again].map(file => file?.gzip)).size).toBe(1)
})

test('a file that has changed is read anew, one that is gone is not there', async () => {
  const files = createStaticFiles(folder)
  await files.find('a.js')
  writeFileSync(`${folder}a.js`, 'changed')
  const later = new Date(statSync(`${folder}a.js`).mtimeMs + 1_000)
  utimesSync(`${folder}a.js`, later, later)
  expect((await files.find('a.js'))?.plain.toString()).toBe('changed')
  rmSync(`${folder}a.js`)
  expect(await files.find('a.js')).toBeNull()
})

test.each(['../a.js', 'notes.txt', 'missing.js', '.js', '', 'a'])('%s is no file to serve', async name => {
  expect(await createStaticFiles(folder).find(name)).toBeNull()
})

test.each([
  ['gzip, deflate, br', 'gzip'],
  ['GZIP;q=0.5', 'gzip'],
  ['gzip;q=0, br', undefined],
  ['br', undefined],
  [undefined, undefined],
])('a client that accepts %s gets %s', async (accepted, encoding) => {
  const { headers, rawPayload } = await ask('a.js', accepted)
  expect([headers['content-encoding'], headers.vary]).toEqual([encoding, 'accept-encoding'])
  expect((encoding ? gunzipSync(rawPayload) : rawPayload).toString()).toBe(script)
})

test('what is small is not compressed', async () => {
  const { headers, payload } = await ask('small.css', 'gzip')
  expect([headers['content-encoding'], headers.vary, payload]).toEqual([undefined, undefined, 'a {}'])
})

async function ask(name: string, accepted: string | undefined) {
  const app = fastify()
  const file = await createStaticFiles(folder).find(name)
  app.get('/', (_, reply) => file && sendStatic(reply, file))
  return app.inject({ url: '/', headers: accepted === undefined ? {} : { 'accept-encoding': accepted } })
}
