/** A2A's client, unmodified, with keys: the card where clients look first, and contexts that have an id of the client's own. */
import { Role, type Task } from '@a2a-js/sdk'
import { type Client, ClientFactory, ClientFactoryOptions, DefaultAgentCardResolver, JsonRpcTransportFactory } from '@a2a-js/sdk/client'
import { defineAgent } from '@rivulet/worker'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { startOwnWorker } from '../support/platform/own-worker.ts'
import { type Platform, startPlatform } from '../support/platform/platform.ts'

const env = { RIVULET_KEY: 'the-root-key-of-this-test', RIVULET_WORKER_KEY: 'the-worker-key-of-this-test' }
const keys = { key: env.RIVULET_WORKER_KEY, callerKey: env.RIVULET_KEY }
let platform: Platform

/** Sends what the user has said in this task. */
const reader = defineAgent('reader', async turn => {
  const messages = await turn.history()
  await turn.send(messages.flatMap(({ author, content }) => (author === 'user' && content.type === 'text' ? content.text : [])).join(', '))
})

beforeAll(async () => {
  platform = await startPlatform({ workers: 0, env })
})
afterAll(() => platform.close())

test('the host itself has the card of its only agent', async () => {
  await startOwnWorker(platform, [reader], keys)
  const client = await clientFrom(platform.urls[0] ?? '')
  expect(outputOf(await send(client, 'Hello'))).toEqual(['Hello'])
})

describe('a context of the client', () => {
  test('keeps its id, in messages, tasks and lists', async () => {
    await startOwnWorker(platform, [reader], keys)
    const client = await clientOf('reader')
    const contextId = `my-context ${crypto.randomUUID()}`
    const first = await send(client, 'One', contextId)
    const second = await send(client, 'Two', contextId)
    expect([first.contextId, second.contextId, outputOf(second)]).toEqual([contextId, contextId, ['One, Two']])
    const read = await client.getTask({ tenant: '', id: second.id, historyLength: undefined })
    expect(read.contextId).toBe(contextId)
    const everything = {
      tenant: '',
      status: 0,
      pageSize: 10,
      pageToken: '',
      historyLength: 0,
      statusTimestampAfter: undefined,
      includeArtifacts: false,
    }
    const { tasks } = await client.listTasks({ ...everything, contextId } as never)
    expect(tasks.map(({ id, contextId: of }) => [id, of])).toEqual([second, first].map(({ id }) => [id, contextId]))
  })

  test('streams under its id', async () => {
    await startOwnWorker(platform, [reader], keys)
    const contextId = `my-stream ${crypto.randomUUID()}`
    const client = await clientOf('reader')
    const ids: (string | undefined)[] = []
    for await (const { payload } of client.sendMessageStream(message('One', contextId)))
      ids.push(payload && 'contextId' in payload.value ? payload.value.contextId : undefined)
    expect(new Set(ids)).toEqual(new Set([contextId]))
  })

  test('that looks like an id of this API, and that no task is, is refused', async () => {
    await startOwnWorker(platform, [reader], keys)
    await expect(send(await clientOf('reader'), 'One', crypto.randomUUID())).rejects.toThrow('No such task')
  })
})

test('a host with several agents says where their cards are', async () => {
  await startOwnWorker(platform, [reader, { ...reader, name: 'other' }], keys)
  const response = await fetch(`${platform.urls[0]}/.well-known/agent-card.json`, {
    headers: { authorization: `Bearer ${env.RIVULET_KEY}` },
  })
  expect([response.status, await response.text()]).toEqual([404, expect.stringContaining('/a2a/<agent>/.well-known/agent-card.json')])
})

const withKey: typeof fetch = (input, init) => {
  const headers = new Headers(init?.headers)
  headers.set('authorization', `Bearer ${env.RIVULET_KEY}`)
  return fetch(input, { ...init, headers })
}

function clientFrom(url: string): Promise<Client> {
  return factory().createFromUrl(url)
}

function clientOf(agent: string): Promise<Client> {
  return factory().createFromUrl(`${platform.urls[0]}/a2a/${agent}/`, '.well-known/agent-card.json')
}

function factory(): ClientFactory {
  const transports = [new JsonRpcTransportFactory({ fetchImpl: withKey })]
  const cardResolver = new DefaultAgentCardResolver({ fetchImpl: withKey })
  return new ClientFactory(ClientFactoryOptions.createFrom(ClientFactoryOptions.default, { transports, cardResolver }))
}

async function send(client: Client, text: string, contextId = ''): Promise<Task> {
  return (await client.sendMessage(message(text, contextId))) as Task
}

function message(text: string, contextId: string) {
  const parts = [{ content: { $case: 'text' as const, value: text }, metadata: undefined, filename: '', mediaType: '' }]
  const about = { messageId: crypto.randomUUID(), role: Role.ROLE_USER, taskId: '', contextId }
  const one = { ...about, parts, metadata: undefined, extensions: [], referenceTaskIds: [] }
  return { tenant: '', message: one, configuration: undefined, metadata: undefined }
}

function outputOf({ artifacts }: Task): unknown[] {
  return artifacts.map(({ parts }) => parts[0]?.content?.value)
}
