/**
 * Worker processes that are killed behind an append of an agent's five rounds of tools. The model and the tool are servers of the test, which count
 * their calls: what viewers saw the end of is never asked again. `packages/worker/src/turn/durable-loop.test.ts` tries every event.
 */
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { fileURLToPath } from 'node:url'
import type { Event } from '@rivulet/protocol'
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest'
import { faultsOf } from '../support/judge/task-laws.ts'
import { type Platform, shortLease, startPlatform } from '../support/platform/platform.ts'
import { type ArmedTree, createArmedTree } from './armed-tree.ts'

const rounds = 5
const agentFile = fileURLToPath(new URL('../support/agents/loop-agent.ts', import.meta.url))

let platform: Platform
let tree: ArmedTree

beforeAll(async () => {
  tree = createArmedTree()
  platform = await startPlatform({ workers: 0, tree, env: shortLease })
})
afterAll(async () => {
  await platform.close()
  tree.remove()
})

/** After how many of its appends each worker is killed. */
const points = [3, 9, 15, 21]

test('killed in the midst of its rounds, it asks neither model nor tool again for what was seen', async () => {
  const outside = await startOutside()
  const trapped = await Promise.all(
    points.map(point => platform.startWorker({ AGENT_FILES: agentFile, WORKER_CONCURRENCY: '1', FAILPOINTS: `appended=kill@${point}` })),
  )
  const tasks = await Promise.all(
    points.map((_, i) => platform.client.createTask({ agent: 'looper', input: `story ${i}`, params: { url: `${outside.url}/${i}` } })),
  )
  await Promise.all(trapped.map(({ exited }) => exited))
  const before = await Promise.all(tasks.map(async ({ task }, i) => ({ ended: endsIn(await eventsOf(task.id)), calls: outside.calls(i) })))
  expect(before.some(({ ended }) => ended.length > 0)).toBe(true)
  await platform.startWorker({ AGENT_FILES: agentFile })
  for (const [i, { task }] of tasks.entries()) {
    const { turns } = await platform.client.waitForEnd(task.id)
    expect(turns).toMatchObject([{ status: 'completed', attempt: 2 }])
    const after = outside.calls(i)
    for (const name of before[i]?.ended ?? []) expect([i, name, after[name]]).toEqual([i, name, before[i]?.calls[name]])
    expect(Object.keys(after)).toHaveLength(rounds * 3 + 1)
    expect(Object.values(after).filter(count => count > 1).length).toBeLessThanOrEqual(2)
    expect((await platform.client.messages(task.id)).map(({ content }) => content.type)).toEqual([
      'text',
      ...Array.from({ length: rounds }, () => ['text', 'tool_request', 'tool_request', 'tool_response', 'tool_response']).flat(),
      'text',
    ])
    expect(await faultsOf(platform, task.id)).toEqual([])
  }
})

/** The responses and results whose end is in the log. */
function endsIn(events: readonly Event[]): string[] {
  let responses = 0
  return events.flatMap(event => {
    if (event.type === 'message.finished' && event.stopReason) return [`model ${++responses}`]
    const content = event.type === 'message.replaced' ? event.content : null
    return content?.type === 'tool_response' ? [`look ${content.content}`] : []
  })
}

async function eventsOf(task: string): Promise<Event[]> {
  return (await platform.log(task)).map(({ event }) => event)
}

/** The model and the tool, for several tasks. */
async function startOutside() {
  const calls: string[] = []
  const server = createServer(async (request, response) => {
    const [, story, what, thing] = request.url?.split('/') ?? []
    if (what === 'look') {
      calls.push(`${story} look ${thing}`)
      return response.end(thing)
    }
    let body = ''
    for await (const chunk of request) body += chunk
    const { messages } = JSON.parse(body) as { messages: { role: string }[] }
    const round = messages.filter(({ role }) => role === 'assistant').length + 1
    calls.push(`${story} model ${round}`)
    response.writeHead(200, { 'content-type': 'text/event-stream' })
    for (const line of linesOf(round)) {
      response.write(`data: ${line}\n\n`)
      await new Promise(resolve => setImmediate(resolve))
    }
    return response.end()
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => {
    server.closeAllConnections()
    server.close()
  })
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    calls: (story: number) => {
      const own = calls.flatMap(call => (call.startsWith(`${story} `) ? [call.slice(2)] : []))
      return Object.fromEntries(own.map(name => [name, own.filter(each => each === name).length]))
    },
  }
}

function linesOf(round: number): string[] {
  const chunk = (delta: object, finish_reason: string | null = null) => JSON.stringify({ choices: [{ index: 0, delta, finish_reason }] })
  if (round > rounds) return [chunk({ content: 'All ' }), chunk({ content: 'seen.' }, 'stop'), '[DONE]']
  const calls = ['a', 'b'].map((name, index) =>
    chunk({ tool_calls: [{ index, id: `${round}${name}`, function: { name: 'look', arguments: `{"thing":"${round}${name}"}` } }] }),
  )
  return [chunk({ content: `Round ${round}: ` }), chunk({ content: 'looking.' }), ...calls, chunk({}, 'tool_calls'), '[DONE]']
}
