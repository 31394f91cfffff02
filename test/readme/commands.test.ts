/** What the README tells a newcomer to type, typed: `npm start`, then every curl and `rivulet`, in the order in which they stand there. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { freePort } from '../support/free-port.ts'
import { wordsIn } from './event-text.ts'
import { answersOf, hasCurl, type RunningCommand, shownIn, startCommand } from './shell.ts'

const curls = shownIn('README.md').filter(command => command.includes('curl '))
const calls = shownIn('README.md').filter(command => command.startsWith('npx rivulet '))

const dataDir = mkdtempSync(join(tmpdir(), 'rivulet-readme-'))
let url = ''
let npmStart: RunningCommand

beforeAll(async () => {
  const port = await freePort()
  url = `http://127.0.0.1:${port}`
  npmStart = startCommand('npm start', { PORT: port, DATA_DIR: dataDir, REDIS_URL: '', DATABASE_URL: '' })
  await npmStart.says('Rivulet is ready')
})

afterAll(async () => {
  await npmStart.interrupt()
  rmSync(dataDir, { recursive: true, force: true })
})

test('npm start says which engines it uses, and how to try it', () => {
  expect(npmStart.output()).toMatch(/redis +(redis|valkey) .*\n/)
  expect(npmStart.output()).toMatch(/postgres +postgres .*\n/)
  expect(npmStart.output()).toContain(`curl -N ${url}/v1/tasks`)
})

test.skipIf(!hasCurl)('each curl of the README does what it says (skipped where there is no curl)', () => {
  expect(curls.length).toBeGreaterThan(7)
  const answers = answersOf(curls, url)
  const [streamed, , fromStart, afterCursor, messages, turn, canceled, retried] = answers
  expect(wordsIn(streamed)).toBe('hello, wide world')
  expect(fromStart).toMatch(/event: turn.queued[\s\S]*event: turn.finished[\s\S]*event: end/)
  expect(afterCursor).not.toContain('id: 2-1\n')
  expect(afterCursor).toContain('id: 2-2\n')
  expect(JSON.parse(messages ?? '').data.map((message: { content: { text: string } }) => message.content.text)).toEqual([
    'hello again',
    'hello again',
  ])
  expect(JSON.parse(turn ?? '').turn).toMatchObject({ number: 2, status: 'queued' })
  expect(JSON.parse(canceled ?? '').task.status).toMatch(/canceled|completed/)
  expect(retried).toMatch(/first try[\s\S]*"attempt":2[\s\S]*second try[\s\S]*event: end/)
})

test('each call of the command line does what it says', () => {
  const [said, tasks, agents] = answersOf(
    calls.map(call => `RIVULET_URL=${url} ${call}`),
    url,
  )
  expect(said?.trim().length).toBeGreaterThan(20)
  expect(tasks).toMatch(/^id +agent +status +changed +name\n[0-9a-f-]{36} +researcher +completed /)
  expect(JSON.parse(agents ?? '').data).toContainEqual(expect.objectContaining({ name: 'researcher', workers: 1 }))
})

test('what Ctrl-C sends stops everything, cleanly', async () => {
  await npmStart.interrupt()
  expect(npmStart.output()).toContain('stopping')
  expect(npmStart.output()).not.toContain('starting it again')
  await expect(fetch(`${url}/healthz`)).rejects.toThrow()
})
