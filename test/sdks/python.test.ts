/** OpenAI's SDK for Python. Skipped where there is no Python, or pip has no store or network to install the SDK from; `install.mjs` says so. */
import { execFile } from 'node:child_process'
import { existsSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { defineAgent } from '@rivulet/worker'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { createGate } from '../support/gate.ts'
import { startOwnWorker } from '../support/platform/own-worker.ts'
import { type Platform, startPlatform } from '../support/platform/platform.ts'
import { until } from '../support/until.ts'
import { watch } from '../support/viewers/viewer.ts'

const python = fileURLToPath(new URL('.venv/bin/python', import.meta.url))
const script = fileURLToPath(new URL('streaming.py', import.meta.url))
const hasSdk = existsSync(fileURLToPath(new URL('.venv/installed', import.meta.url)))

test.skipIf(!hasSdk)('the adapters of the package for Python read what the SDKs stream', async () => {
  const pathOf = (path: string) => fileURLToPath(new URL(path, import.meta.url))
  const env = { ...process.env, PYTHONPATH: pathOf('../../sdks/python/src'), PYTHONDONTWRITEBYTECODE: '1' }
  // If a check fails, the call rejects with the output of the script. It skips the SDKs that are not installed.
  const { stderr } = await promisify(execFile)(python, [pathOf('../support/python/adapters.py')], { env })
  expect(stderr).toMatch(/^OK\b/m)
})

describe.skipIf(!hasSdk)('the SDK for Python', () => {
  let platform: Platform
  let gate = createGate()

  /** Sends a word, and the rest when the test lets it. */
  const slow = defineAgent('slow', async turn => {
    const message = await turn.message()
    await message.append('one ')
    await gate.opened
    await message.append('two')
    await message.finish()
  })

  beforeAll(async () => {
    platform = await startPlatform({ workers: 0 })
  })
  beforeEach(async () => {
    gate = createGate()
    await startOwnWorker(platform, [slow])
  })
  afterAll(() => platform.close())

  test('streams a response and a chat completion, also after a heartbeat', async () => {
    const received = Promise.all([run('stream_response'), run('stream_chat')])
    received.catch(() => {})
    const tasks = await until('both turns run', async () => {
      const { body } = await platform.client.get<{ data: { id: string }[] }>('/v1/tasks?agent=slow&status=running')
      return body.data.length === 2 && body.data
    })
    // The API sends each viewer a heartbeat in every cycle, so once this viewer has two, the SDK has one.
    const viewer = watch(tasks[0]?.id ?? '', { urls: platform.urls })
    await viewer.until('two heartbeats', ({ journal }) => journal.connections.some(({ comments }) => comments.length >= 2))
    await viewer.stop()
    gate.open()
    expect(await received).toEqual([{ text: 'one two', last: 'response.completed' }, { text: 'one two' }])
  })

  test('cancels and deletes a response, without a body', async () => {
    expect(await run('cancel_and_delete')).toEqual({ status: 'cancelled', after: 404 })
  })

  test('has files and conversations', async () => {
    expect(await run('files')).toEqual({ filename: 'one.txt', isListed: true, content: 'one', deleted: true })
    expect(await run('conversations')).toEqual({ texts: ['one', 'two'], metadata: { c: 'd' }, deleted: true })
  })

  async function run(call: string): Promise<unknown> {
    const { stdout } = await promisify(execFile)(python, [script, call, `${platform.urls[0]}/openai/v1`, 'slow'])
    return JSON.parse(stdout)
  }
})
