/**
 * What the README, the quick start and the page about calling agents tell a newcomer to type, typed: `npm start`, then every curl and `rivulet`,
 * in the order in which they stand there.
 */
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, describe, expect, onTestFinished, test, vi } from 'vitest'
import { freePort } from '../support/free-port.ts'
import { type RunningCommand, startCommand } from '../support/process/running-command.ts'
import { blocksOf } from '../support/texts/fenced-blocks.ts'
import { wordsIn } from './event-text.ts'
import { hasCurl, repliesOf, shownIn } from './shell.ts'

// Each command starts Node a few times, and the machine may be busy with other tests.
vi.setConfig({ testTimeout: 300_000 })

const root = fileURLToPath(new URL('../..', import.meta.url))
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
  expect(npmStart.output()).toContain('`npx rivulet init <folder>` creates a project with an agent of your own. Ctrl-C stops everything.\n')
})

test.skipIf(!hasCurl)('each curl of the README does what it says (skipped where there is no curl)', async () => {
  expect(curls.length).toBeGreaterThan(7)
  const replies = await repliesOf(curls, url)
  const [streamed, , fromStart, afterCursor, messages, turn, canceled, retried] = replies
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

test('each call of the command line does what it says', async () => {
  const [said, tasks, agents, asked] = await repliesOf(calls, url)
  expect(said?.trim().length).toBeGreaterThan(20)
  expect(tasks).toMatch(/^id +agent +status +changed +tokens +cost +name[\s\S]*\n[0-9a-f-]{36} +researcher +completed /)
  expect(JSON.parse(agents ?? '').data).toContainEqual(expect.objectContaining({ name: 'researcher', workers: 1 }))
  expect(asked).toContain('what is in this file?')
})

describe.skipIf(!hasCurl)('skipped where there is no curl:', () => {
  test('the quick start leads to an agent of one’s own, that can be left and come back to', async () => {
    const commands = shownIn('docs/quick-start.md')
    const [program] = blocksOf(readFileSync(`${root}docs/quick-start.md`, 'utf8')).filter(({ language }) => language === 'ts')
    // Inside the checkout, where a file of the reader's would be: it finds the packages from there.
    mkdirSync(`${root}.rivulet`, { recursive: true })
    const folder = mkdtempSync(`${root}.rivulet/quick-start-`)
    writeFileSync(join(folder, 'hello.ts'), program?.text ?? '')
    const [npxWorker = ''] = commands.filter(command => command.startsWith('npx rivulet worker'))
    const worker = startCommand(npxWorker, { DATA_DIR: dataDir, REDIS_URL: '', RIVULET_URL: '' }, folder)
    onTestFinished(async () => {
      await worker.interrupt()
      rmSync(folder, { recursive: true, force: true })
    })
    await worker.says('worker is ready')

    const runs = commands.filter(command => command.startsWith('npx rivulet run'))
    const [said, [, , rest = '']] = await Promise.all([
      repliesOf(runs, url),
      repliesOf(
        commands.filter(command => command.includes('curl ')),
        url,
      ),
    ])
    const speech = 'Hello, Ada! I speak slowly, so that you can leave in the middle and come back for the rest.'
    expect(said).toEqual([expect.stringContaining('84'), `${speech} \n`])
    expect(rest).not.toMatch(/event: (snapshot|turn\.started)/)
    expect(rest).toMatch(/"text":"[^"]*rest\. "[\s\S]*event: turn.finished[\s\S]*event: end/)
  })

  test('the commands of the page about usage show it, and a budget', async () => {
    const [report, table, created] = await repliesOf(shownIn('docs/usage.md'), url)
    expect(read(report)).toMatchObject({ by: 'agent', total: { usage: {} } })
    expect(table).toMatch(/^model +turns +responses +input +output +cost\n/)
    expect(read(created).task).toMatchObject({ budget: { usd: 0.5 } })
  })

  test('each curl of the page about calling agents does what it says', async () => {
    const replies = await repliesOf(shownIn('docs/calling-agents.md'), url)
    const [
      streamed,
      waited,
      created,
      named,
      ,
      rejected,
      interrupting,
      stopped,
      canceled,
      first,
      again,
      aiSdk,
      codingAgent,
      ,
      ,
      byToken,
      refused,
    ] = replies
    expect(replies).toHaveLength(17)
    expect(wordsIn(streamed)).toBe('all in one request')
    expect(read(waited).turn.status).toBe('completed')
    expect(read(named).task.id).toBe(read(created).task.id)
    expect([read(created).turn.number, read(named).turn.number]).toEqual([1, 2])
    expect(read(rejected).error.code).toBe('task_busy')
    expect(read(interrupting).turn.number).toBe(2)
    // Whether a worker had begun the second turn by then is left open, so only the cancel after it tells.
    expect(read(stopped).task.id).toBe(read(canceled).task.id)
    expect(read(canceled).task.status).toBe('canceled')
    expect(bodyOf(again)).toBe(bodyOf(first))
    expect([first, again].map(reply => reply?.includes('idempotent-replayed: true'))).toEqual([false, true])
    expect(aiSdk).toMatch(/"type":"text-delta"[\s\S]*data: \[DONE\]/)
    expect(codingAgent).toMatch(/event: turn\n[\s\S]*"type":"assistant_text_delta"[\s\S]*"type":"turn_finished"[\s\S]*event: end\n/)
    expect(wordsIn(byToken)).toBe('for your eyes only')
    expect(read(refused).error.code).toBe('unknown_agent')
  })
})

test('what Ctrl-C sends stops everything, cleanly', async () => {
  await npmStart.interrupt()
  expect(npmStart.output()).toContain('stopping')
  expect(npmStart.output()).not.toContain('starting it again')
  await expect(fetch(`${url}/healthz`)).rejects.toThrow()
})

type Reply = { task: { id: string; status: string }; turn: { number: number; status: string }; error: { code: string } }

function read(reply = ''): Reply {
  return JSON.parse(reply) as Reply
}

/** Of what `curl -i` writes. */
function bodyOf(reply = ''): string {
  return reply.split('\r\n\r\n')[1] ?? ''
}
