/** Every file in `examples/` runs: each as a worker of its own against the platform, with what it has to say written down here. */
import { readdirSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import type { Message } from '@rivulet/protocol'
import { afterAll, beforeAll, expect, inject, onTestFinished, test } from 'vitest'
import { faultsOfViewers } from '../support/judge/judge-viewers.ts'
import { faultsOf } from '../support/judge/task-laws.ts'
import { type Platform, startPlatform } from '../support/platform/platform.ts'
import { startCommand } from '../support/process/running-command.ts'
import { watch } from '../support/viewers/viewer.ts'

type Expectation = {
  /** Default: the name of the file. */
  agent?: string
  input: string
  /** What is stored of each message of the agent, in order. */
  says: Partial<Message>[] | object[]
  /** Default 1. */
  attempts?: number
}

const expectations: Record<string, Expectation> = {
  'auto-send.ts': {
    input: 'hello',
    says: [
      { content: { type: 'reasoning', summary: [], content: ['A greeting is asked for.'] } },
      { content: { type: 'text', text: 'Good morning, and welcome.', format: 'markdown' }, stopReason: 'stop' },
    ],
  },
  'by-hand.ts': {
    input: 'not so loud',
    says: [
      { content: { type: 'data', data: { done: 3, of: 3 } } },
      { content: { type: 'text', text: '**NOT SO LOUD**', format: 'markdown' }, metadata: { words: 3 } },
    ],
  },
  'generator.ts': {
    input: 'what is it?',
    says: [
      { content: { type: 'text', text: 'The answer is 42.', format: 'plain' } },
      { content: { type: 'text', text: '6 * 7', format: 'code' } },
    ],
  },
  'steps.ts': {
    input: 'one, please',
    says: [
      { content: { type: 'text', text: 'Placing an order (attempt 1).', format: 'plain' } },
      { content: { type: 'text', text: expect.stringMatching(/^Order \S+ was placed in attempt 1 and confirmed in attempt 2\.$/) } },
    ],
    attempts: 2,
  },
  'tools.ts': {
    input: 'how many words are these?',
    says: [
      { content: { type: 'text', text: 'Let me count. ', format: 'markdown' } },
      { content: { type: 'tool_request', name: 'count_words', arguments: { text: 'how many words are these?' } } },
      { content: { type: 'tool_response', name: 'count_words', content: { words: 5 }, isError: false } },
      { content: { type: 'text', text: 'I counted: {"words":5}.' } },
    ],
  },
}

const folder = fileURLToPath(new URL('../../examples/', import.meta.url))
const files = readdirSync(folder).filter(name => /(?<!\.test)\.ts$/.test(name))

let platform: Platform

beforeAll(async () => {
  platform = await startPlatform({ workers: 0 })
})
afterAll(() => platform.close())

test('every example is expected to say something, and everything that is expected is there', () => {
  expect(files.toSorted()).toEqual(Object.keys(expectations).toSorted())
})

test.each(files)('%s runs, and says what it should', async file => {
  const { agent = file.replace(/\.ts$/, ''), input, says, attempts = 1 } = expectations[file] ?? { input: '', says: [] }
  await startWorker(`examples/${file}`)
  const { task } = await platform.client.createTask({ agent, input })
  const viewer = watch(task.id, { urls: platform.urls })
  const { turns } = await platform.client.waitForEnd(task.id)
  expect(turns).toMatchObject([{ status: 'completed', attempt: attempts }])
  const messages = await platform.client.messages(task.id)
  const said = messages.filter(({ author }) => author === 'agent')
  expect(said).toMatchObject(says.map(message => ({ status: 'complete', ...message })))
  expect(said).toHaveLength(says.length)
  expect(await faultsOfViewers(platform, [viewer])).toEqual([])
  expect(await faultsOf(platform, task.id)).toEqual([])
})

test.each(files)('%s is short: less than 40 lines', file => {
  expect(
    readFileSync(folder + file, 'utf8')
      .trimEnd()
      .split('\n').length,
  ).toBeLessThan(40)
})

/** As a document says; interrupted when the test is over. */
async function startWorker(file: string): Promise<void> {
  const REDIS_PREFIX = platform.keys.queuePrefix.slice(1, -':queue}'.length)
  const env = { REDIS_URL: inject('redisUrl'), REDIS_PREFIX, RIVULET_URL: platform.url }
  const worker = startCommand(`npm run worker -- ${file}`, env)
  onTestFinished(() => worker.interrupt())
  await worker.says('worker is ready')
}
