/**
 * The commands of the README, the quick start and the page about calling agents: `npm start`, then every curl and `rivulet`, in the order in which they
 * stand there.
 */
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { freePort } from '../support/free-port.ts'
import { type RunningCommand, startCommand } from '../support/process/running-command.ts'
import { blocksOf } from '../support/texts/fenced-blocks.ts'
import { wordsIn } from './event-text.ts'
import { hasCurl, repliesOf, shownIn } from './shell.ts'

const root = fileURLToPath(new URL('../..', import.meta.url))
const quickStart = shownIn('docs/quick-start.md')
const [, ...calls] = quickStart.filter(command => /^npx rivulet (run (?!hello)|tasks|agents)/.test(command))
const leaving = quickStart.findIndex(command => command.includes('"agent":"hello"'))
const curls = quickStart.slice(0, leaving).filter(command => command.includes('curl '))

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

test('the agent on the first screen of the README runs, and the program there streams it', async () => {
  const [agent, program] = blocksOf(readFileSync(`${root}README.md`, 'utf8')).filter(({ language }) => language === 'ts')
  const [dev = ''] = shownIn('README.md').filter(command => command.startsWith('npm run dev'))
  mkdirSync(`${root}.rivulet`, { recursive: true })
  const folder = mkdtempSync(`${root}.rivulet/readme-`)
  const own = `http://127.0.0.1:${await freePort()}`
  const env = { PORT: new URL(own).port, DATA_DIR: join(folder, 'data'), REDIS_URL: '', DATABASE_URL: '' }
  writeFileSync(join(folder, 'hello.ts'), agent?.text ?? '')
  writeFileSync(join(folder, 'program.ts'), (program?.text ?? '').replace('http://127.0.0.1:4000', own))
  const platform = startCommand(dev.replace('hello.ts', join(folder, 'hello.ts')), env)
  onTestFinished(async () => {
    await platform.interrupt()
    rmSync(folder, { recursive: true, force: true })
  })
  await platform.says('Rivulet is ready')
  const replies = await repliesOf(['npx rivulet run hello Ada', `node --import tsx ${join(folder, 'program.ts')}`], own)
  const speech = 'Hello, Ada! Leave in the middle, and come back for the rest.'
  expect(replies.map(reply => reply.trim())).toEqual([speech, speech])
})

test('npm start says which engines it uses, and how to try it', () => {
  expect(npmStart.output()).toMatch(/redis +(redis|valkey) .*\n/)
  expect(npmStart.output()).toMatch(/postgres +postgres .*\n/)
  expect(npmStart.output()).toContain(`curl -N ${url}/v1/tasks`)
  expect(npmStart.output()).toContain('`npx rivulet init <folder>` creates a project with an agent of your own. Ctrl-C stops everything.\n')
})

test.skipIf(!hasCurl)('each curl of the quick start does what it says (skipped where there is no curl)', async () => {
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
    const [program] = blocksOf(readFileSync(`${root}docs/quick-start.md`, 'utf8')).filter(({ language }) => language === 'ts')
    // Inside the checkout, where a file of the reader's would be: it finds the packages from there.
    mkdirSync(`${root}.rivulet`, { recursive: true })
    const folder = mkdtempSync(`${root}.rivulet/quick-start-`)
    writeFileSync(join(folder, 'hello.ts'), program?.text ?? '')
    const [npxWorker = ''] = quickStart.filter(command => command.startsWith('npx rivulet worker'))
    const worker = startCommand(npxWorker, { DATA_DIR: dataDir, REDIS_URL: '', RIVULET_URL: '' }, folder)
    onTestFinished(async () => {
      await worker.interrupt()
      rmSync(folder, { recursive: true, force: true })
    })
    await worker.says('worker is ready')

    const runs = quickStart.filter(command => /^npx rivulet run (assistant|hello)/.test(command))
    const [said, [, , rest = '']] = await Promise.all([repliesOf(runs, url), repliesOf(quickStart.slice(leaving), url)])
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
