/** Output of an agent that Postgres cannot store or no client could read: the worker makes it well-formed or rejects it, once. */
import type { Json } from '@rivulet/protocol'
import { type AgentHandler, defineAgent, delta, full, start } from '@rivulet/worker'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { faultsOfViewers } from '../support/judge/judge-viewers.ts'
import { faultsOf } from '../support/judge/task-laws.ts'
import { startOwnWorker } from '../support/platform/own-worker.ts'
import { type Platform, startPlatform } from '../support/platform/platform.ts'
import { watch } from '../support/viewers/viewer.ts'

const deepText = '['.repeat(100_000) + ']'.repeat(100_000)

const poisons: [string, AgentHandler][] = [
  ['NUL in a text', say('a\0b')],
  ['half a character', say('a\ud83d', 'b')],
  ['the other half of a character', say('a', '\ude00b')],
  ['a character in two halves', say('a\ud83d', '\ude00b')],
  ['NUL in metadata', send(() => full(0, { type: 'text', text: 'a', format: 'plain' }, { 'k\0': 'v\0' }))],
  ['NUL in data', send(() => full(0, { type: 'data', data: { 'k\0': ['\ud800', '\0'] } }))],
  ['data a hundred thousand levels deep', send(() => full(0, { type: 'data', data: nested(100_000) }))],
  ['JSON text a hundred thousand levels deep', send(() => delta(0, { type: 'data_json', text: deepText }))],
  ['arguments with escaped NUL', send(() => delta(0, { type: 'tool_request', text: '{"a\\u0000":"\\ud800"}' }))],
  ['a number that JSON cannot hold', send(() => full(0, { type: 'data', data: { n: Number.NaN, i: Number.POSITIVE_INFINITY } }))],
  ['a text that begins with NUL', send(() => start(0, { type: 'text', text: '\0', format: 'plain' }))],
]

let platform: Platform

beforeAll(async () => {
  platform = await startPlatform({ workers: 0 })
})
afterAll(() => platform.close())

test('the turn ends at its first attempt, stored as it was streamed, whatever it says', async () => {
  await startOwnWorker(
    platform,
    poisons.map(([, run], i) => defineAgent(`poison-${i}`, run)),
  )
  const judged = await Promise.all(poisons.map(async ([name], i) => [name, await judge(`poison-${i}`)] as const))
  expect(Object.fromEntries(judged)).toEqual(Object.fromEntries(poisons.map(([name]) => [name, []])))
})

/** A turn that is tried again would not end any better: with one attempt allowed, more would be a loop. */
async function judge(agent: string): Promise<string[]> {
  const { task } = await platform.client.createTask({ agent, maxAttempts: 1 })
  const viewer = watch(task.id, { urls: [platform.url] })
  const { turns } = await platform.client.waitForEnd(task.id)
  const stored = JSON.stringify(await platform.client.messages(task.id))
  return [
    ...(turns.length === 1 && turns[0]?.attempt === 1 ? [] : [`it was tried ${turns[0]?.attempt} times`]),
    ...(/\\u0000|\\ud[89a-f]/i.test(stored) ? [`stored is ${stored.slice(0, 300)}`] : []),
    ...(await faultsOf(platform, task.id)),
    ...(await faultsOfViewers(platform, [viewer])),
  ]
}

function say(...texts: string[]): AgentHandler {
  return async function* () {
    for (const text of texts) yield delta(0, text)
  }
}

function send(make: () => ReturnType<typeof full> | ReturnType<typeof delta> | ReturnType<typeof start>): AgentHandler {
  return async function* () {
    yield make()
  }
}

function nested(depth: number): Json {
  let value: Json = 1
  for (let i = 0; i < depth; i += 1) value = [value]
  return value
}
