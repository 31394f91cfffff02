/** Ten thousand requests, log entries and pushes at random, the same for the same seed: `RIVULET_FUZZ_SEED` sends others. */
import { createClient } from '@rivulet/client'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { repeat, rest, say, scripted } from '../support/agents/scripts.ts'
import { holdingsOf, measuredOptions, untilNoMoreIsHeld } from '../support/fuzz/holdings.ts'
import { descriptionOf, fuzzHttp } from '../support/fuzz/http.ts'
import { fuzzLogs } from '../support/fuzz/log.ts'
import { faultsInLines } from '../support/fuzz/log-lines.ts'
import { fuzzSeed } from '../support/fuzz/seed.ts'
import { pepper } from '../support/platform/keyring.ts'
import { type ApiProcess, type Platform, startPlatform } from '../support/platform/platform.ts'

const keys = { client: 'the-root-key-of-this-test', worker: 'the-worker-key-of-this-test' }
const env = { RIVULET_KEY: keys.client, RIVULET_WORKER_KEY: keys.worker, KEY_PEPPER: pepper, LOG_LEVEL: 'trace', ...measuredOptions }
const cases = Number(process.env.RIVULET_FUZZ_CASES ?? 10_000)

let platform: Platform
let api: ApiProcess

beforeAll(async () => {
  console.log(`Seed ${fuzzSeed}`)
  platform = await startPlatform({ env })
  api = platform.apis[0] as ApiProcess
  const hello = { worker: 'none', agents: [{ name: 'idle', description: '' }] }
  await platform.client.post('/internal/hello', hello, { authorization: `Bearer ${keys.worker}` })
})
afterAll(() => platform.close())

test('requests get no 5xx, errors of the one shape, and nothing back of what they said; the process stays as it was', {
  timeout: 600_000,
}, async () => {
  await fuzzHttp(api.url, keys, 500)
  const before = await holdingsOf(api, keys.client)
  const { faults, statuses, routes } = await fuzzHttp(api.url, keys, cases)
  console.log(`Responses by status: ${JSON.stringify(statuses)}`)
  expect(faults.slice(0, 10)).toEqual([])
  const described = Object.entries((await descriptionOf(api.url)).paths)
  const every = described.flatMap(([path, operations]) => Object.keys(operations).map(method => `${method.toUpperCase()} ${path}`))
  expect(every.filter(route => !routes.has(route))).toEqual([])
  // Where no id is that of a task, turn or key that is there, only the check of the id was tried.
  expect(every.filter(route => /\/v1\/.*{id}/.test(route) && !Array.from(routes.get(route) ?? []).some(isSuccess))).toEqual([])
  expect(faultsInLines(api.lines).slice(0, 10)).toEqual([])
  await untilNoMoreIsHeld(api, keys.client, before, 10_000_000)
  expect(
    await createClient({ url: api.url, key: keys.client })
      .tasks.create({ agent: 'echo', input: 'still there' })
      .then(task => task.result()),
  ).toMatchObject({ text: 'still there' })
})

test('logs and channels full of rubbish: no crash, no malformed frame, nothing of another task, and every task ends', {
  timeout: 600_000,
}, async () => {
  const client = createClient({ url: api.url, key: keys.client })
  const words = repeat(400, say(0, 'word '), rest(20))
  const beside = await client.tasks.create(scripted([words]) as { agent: string })
  const heard = beside.result()
  await fuzzLogs(platform, api, keys, 200)
  const before = await holdingsOf(api, keys.client)
  const faults = await fuzzLogs(platform, api, keys, cases)
  expect(faults.slice(0, 10)).toEqual([])
  expect(faultsInLines(api.lines).slice(0, 10)).toEqual([])
  expect(await heard).toMatchObject({ text: 'word '.repeat(400) })
  await untilNoMoreIsHeld(api, keys.client, before, 10_000_000)
})

function isSuccess(status: number): boolean {
  return status >= 200 && status < 300
}
