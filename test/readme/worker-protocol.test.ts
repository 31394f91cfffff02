/** The workers that the page on the worker protocol shows, as they stand there. */
import { spawn, spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest'
import { type Platform, startPlatform } from '../support/platform/platform.ts'
import { blocksOf } from '../support/texts/fenced-blocks.ts'
import { until } from '../support/until.ts'

const page = readFileSync(fileURLToPath(new URL('../../docs/worker-protocol.md', import.meta.url)), 'utf8')
const isThere = (program: string) => spawnSync(program, ['--version']).status === 0

let platform: Platform
beforeAll(async () => {
  platform = await startPlatform({
    workers: 0,
    env: { RIVULET_WORKER_KEY: 'the-worker-key-of-this-page', RIVULET_KEY: 'the-key-of-this-page' },
  })
})
afterAll(() => platform.close())

test.skipIf(!isThere('python3'))('[needs python3] the one in Python runs turns side by side', async () => {
  start('python3', ['-c', blockOf('python')])
  const tasks = await Promise.all(['a quiet word', 'and another'].map(input => createTask('shout', input)))
  const texts = await Promise.all(tasks.map(textOf))
  expect(texts).toEqual(['A QUIET WORD ', 'AND ANOTHER '])
})

test.skipIf(!isThere('python3'))(
  '[needs python3] the one in Python claims no more turns than it has slots, and stops those that are canceled',
  async () => {
    const endless = `    while turn["inputs"][0]["content"]["text"] == "wait":
        yield {"type": "delta", "index": 0, "delta": {"type": "text", "text": "."}}
        time.sleep(0.05)
    for word in`
    const changes: [string, string][] = [
      ['SLOTS = 10', 'SLOTS = 2'],
      ['"AGENT", "shout"', '"AGENT", "small"'],
      ['    for word in', endless],
    ]
    const program = changes.reduce((text, [from, to]) => {
      expect(text.split(from)).toHaveLength(2)
      return text.replace(from, to)
    }, blockOf('python'))
    start('python3', ['-c', program])
    const endlessTasks = [await createTask('small', 'wait'), await createTask('small', 'wait')]
    await until('both slots are taken', async () => (await Promise.all(endlessTasks.map(statusOf))).every(status => status === 'running'))
    const tasks = await Promise.all(['one', 'two', 'three'].map(input => createTask('small', input)))
    expect(await Promise.all(tasks.map(statusOf))).toEqual(['queued', 'queued', 'queued'])
    for (const task of endlessTasks) await fetch(`${platform.url}/v1/tasks/${task}/cancel`, { method: 'POST', headers: { authorization } })
    expect(await Promise.all(tasks.map(textOf))).toEqual(['ONE ', 'TWO ', 'THREE '])
    expect(await Promise.all(endlessTasks.map(statusOf))).toEqual(['canceled', 'canceled'])
  },
)

test.skipIf(!isThere('jq') || !isThere('curl'))('[needs curl and jq] the one with curl runs a turn', async () => {
  start('bash', ['-c', blockOf('bash')])
  expect(await textOf(await createTask('curled', 'Ada'))).toBe('Hello, Ada')
})

function blockOf(language: string): string {
  const [block] = blocksOf(page).filter(found => found.language === language)
  expect(block).toBeDefined()
  return block?.text ?? ''
}

function start(program: string, args: string[]): void {
  const env = { ...process.env, RIVULET_URL: platform.url, RIVULET_WORKER_KEY: 'the-worker-key-of-this-page' }
  const child = spawn(program, args, { env, stdio: 'ignore' })
  onTestFinished(() => void child.kill('SIGKILL'))
}

const authorization = 'Bearer the-key-of-this-page'
const headers = { 'content-type': 'application/json', authorization }

async function statusOf(task: string): Promise<string> {
  const response = await fetch(`${platform.url}/v1/tasks/${task}`, { headers })
  return ((await response.json()) as { task: { status: string } }).task.status
}

/** Until its worker has announced it, the agent is unknown. */
function createTask(agent: string, input: string): Promise<string> {
  return until(`${agent} is there`, async () => {
    const response = await fetch(`${platform.url}/v1/tasks`, { method: 'POST', headers, body: JSON.stringify({ agent, input }) })
    return response.status === 201 && ((await response.json()) as { task: { id: string } }).task.id
  })
}

function textOf(task: string): Promise<string> {
  return until('the task is completed', async () => {
    const { task: found } = (await (await fetch(`${platform.url}/v1/tasks/${task}`, { headers })).json()) as { task: { status: string } }
    if (found.status !== 'completed') return null
    const { data } = (await (await fetch(`${platform.url}/v1/tasks/${task}/messages`, { headers })).json()) as {
      data: { author: string; content: { text: string } }[]
    }
    return data.find(({ author }) => author === 'agent')?.content.text
  })
}
