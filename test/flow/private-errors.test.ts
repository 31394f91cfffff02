/**
 * Why an agent failed is for its operator: a viewer with a token gets the text that the agent's author meant for it, or a fixed sentence. The
 * text of an exception is in the logs, and in the turn that a key gets.
 */
import { fileURLToPath } from 'node:url'
import { createClient } from '@rivulet/client'
import type { Message, Turn } from '@rivulet/protocol'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { secret } from '../support/agents/failing-agents.ts'
import { freePort } from '../support/free-port.ts'
import { type Platform, startPlatform } from '../support/platform/platform.ts'
import { until } from '../support/until.ts'

const key = 'the-root-key-of-this-test'
const env = { RIVULET_KEY: key, RIVULET_WORKER_KEY: 'the-worker-key-of-this-test' }

let platform: Platform

beforeAll(async () => {
  platform = await startPlatform({ workers: 0, env })
  await platform.startWorker({ AGENT_FILES: fileURLToPath(new URL('../support/agents/failing-agents.ts', import.meta.url)) })
})
afterAll(() => platform.close())

describe.each([
  ['an exception', 'throws', 'The agent failed', secret],
  ['an exception within a message', 'throws-in-scope', 'The agent failed', `fetch failed: ${secret}`],
  ['an exception within a step', 'throws-in-step', 'The agent failed', secret],
  ['an error of a model out of reach', 'runs', 'The connection to the model provider failed', expect.stringContaining('ECONNREFUSED')],
  ['an error that its author means for viewers', 'means-it', 'There is no order 7', `There is no order 7: ${secret}`],
  ['such an error of a run', 'means-it-in-a-run', 'There is no order 7', undefined],
])('%s', (_, agent, publicText, privateText) => {
  let task: string
  beforeAll(async () => {
    const params = agent === 'runs' ? `http://127.0.0.1:${await freePort()}` : null
    const created = await createClient({ url: platform.url, key }).tasks.create({ agent, params, maxAttempts: 1 })
    await expect(created.result()).rejects.toMatchObject({ code: 'agent_error', message: publicText })
    task = created.id
  })

  test('reaches a viewer in public words, wherever it looks', async () => {
    const { token } = await createClient({ url: platform.url, key }).tasks.get(task).createToken({ can: 'read' })
    const looks = ['', '/messages', '/events', '/events?from=start', '/events?format=ai-sdk', '/events?format=coding-agent']
    // A message has an error only if it was open, and the events of a coding agent have none.
    const hasNoError = new Set(['/messages', '/events?format=coding-agent'])
    for (const look of looks) {
      const text = await read(`/v1/tasks/${task}${look}`, token)
      expect([look, withoutParams(text)]).toEqual([look, expect.not.stringMatching(/hunter2|db-7|ECONNREFUSED|fetch failed|127\.0\.0\.1/)])
      if (!hasNoError.has(look)) expect([look, text]).toEqual([look, expect.stringContaining(publicText)])
    }
    const { turns } = JSON.parse(await read(`/v1/tasks/${task}`, token)) as { turns: Turn[] }
    expect(turns[0]?.error).toEqual({ code: 'agent_error', message: publicText })
    const { data } = JSON.parse(await read(`/v1/tasks/${task}/messages`, token)) as { data: Message[] }
    for (const { error } of data) expect(error?.message ?? publicText).toBe(publicText)
  })

  test('reaches a key in full, and the logs of both processes', async () => {
    const { turns } = JSON.parse(await read(`/v1/tasks/${task}`, key)) as { turns: Turn[] }
    const error = { code: 'agent_error', message: publicText, ...(privateText !== undefined && { detail: privateText }) }
    expect(turns[0]?.error).toEqual(error)
    // Events are the same for all viewers.
    expect(withoutParams(await read(`/v1/tasks/${task}/events?from=start`, key))).not.toMatch(/hunter2|ECONNREFUSED/)
    const lines = await until('both have logged it', () => {
      const found = [
        platform.apis[0]?.lines.find(line => line.msg === 'turn ended' && line.task === task),
        platform.workers[0]?.lines.find(line => line.msg === 'turn failed' && line.task === task),
      ]
      return found.every(Boolean) && found
    })
    expect(lines.map(line => line?.error)).toEqual([error, error])
  })
})

async function read(path: string, bearer: string): Promise<string> {
  const response = await fetch(`${platform.url}${path}`, { headers: { authorization: `Bearer ${bearer}` } })
  expect(response.status).toBe(200)
  return response.text()
}

/** The params of the task name a port of this machine. */
function withoutParams(text: string): string {
  return text.replaceAll(/"params":"[^"]*"/g, '')
}
