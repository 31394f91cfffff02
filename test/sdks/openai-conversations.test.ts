/** OpenAI's SDK, unmodified: conversations, which are tasks, and their items. */
import { defineAgent } from '@rivulet/worker'
import OpenAI, { APIError } from 'openai'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { startOwnWorker } from '../support/platform/own-worker.ts'
import { type Platform, startPlatform } from '../support/platform/platform.ts'
import { payerOf } from './asking-agents.ts'

const env = { RIVULET_KEY: 'the-root-key-of-this-test', RIVULET_WORKER_KEY: 'the-worker-key-of-this-test' }
const keys = { key: env.RIVULET_WORKER_KEY, callerKey: env.RIVULET_KEY }
let platform: Platform
let client: OpenAI

/** Sends all texts of the conversation, up to its input. */
const teller = defineAgent('teller', async turn => {
  const texts = (await turn.history()).flatMap(({ content }) => (content.type === 'text' ? [content.text] : []))
  await turn.send(texts.join(', '))
})
/** The first agent in the list of agents, which is not the one that responds. */
const first = defineAgent('a-first', async turn => void (await turn.send('first')))
const payer = { ...payerOf(12), name: 'payer' }

const user = (text: string) => ({ role: 'user' as const, content: text })

beforeAll(async () => {
  platform = await startPlatform({ apis: 2, workers: 0, env })
  client = new OpenAI({ baseURL: `${platform.url}/openai/v1`, apiKey: env.RIVULET_KEY, maxRetries: 0 })
})
afterAll(() => platform.close())

describe('a conversation', () => {
  test('is created, retrieved, updated and deleted', async () => {
    await startOwnWorker(platform, [first, teller], keys)
    const created = await client.conversations.create({ metadata: { topic: 'one', lang: 'en' } })
    expect(created).toMatchObject({ object: 'conversation', metadata: { topic: 'one', lang: 'en' }, created_at: expect.any(Number) })
    expect(await client.conversations.retrieve(created.id)).toEqual(created)
    const updated = await client.conversations.update(created.id, { metadata: { topic: 'two' } })
    expect(updated).toEqual({ ...created, metadata: { topic: 'two' } })
    expect(await client.conversations.delete(created.id)).toMatchObject({ id: created.id, object: 'conversation.deleted', deleted: true })
    expect(await codeOf(client.conversations.retrieve(created.id))).toEqual([404, 'task_not_found'])
    expect(await codeOf(client.conversations.retrieve('conv_123'))).toEqual([404, 'task_not_found'])
  })

  test('has its items as the history of the first response, whichever agent that is of', async () => {
    await startOwnWorker(platform, [first, teller], keys)
    const { id } = await client.conversations.create({ items: [user('one'), { role: 'assistant', content: 'two' }] })
    const added = await client.conversations.items.create(id, { items: [{ role: 'developer', content: 'three' }, user('four')] })
    expect(added.data).toMatchObject([{ role: 'system' }, { role: 'user' }])
    const response = await client.responses.create({ model: 'teller', conversation: id, input: 'five' })
    expect([response.output_text, response.conversation?.id]).toEqual(['one, two, three, four, five', id])
    const next = await client.responses.create({ model: 'teller', conversation: id, input: 'six' })
    expect(next.output_text).toBe('one, two, three, four, five, one, two, three, four, five, six')
    expect(await codeOf(client.responses.create({ model: 'a-first', conversation: id, input: 'seven' }))).toEqual([400, 'bad_request'])
    expect(await codeOf(client.conversations.items.create(id, { items: [user('eight')] }))).toEqual([400, 'bad_request'])
  })
})

describe('the items of a conversation', () => {
  test('are listed page by page, in both orders, and retrieved', async () => {
    await startOwnWorker(platform, [teller], keys)
    const { id } = await client.conversations.create({ items: [user('one'), { role: 'assistant', content: 'two' }, user('three')] })
    await client.responses.create({ model: 'teller', conversation: id, input: 'four' })
    const listed = async (order: 'asc' | 'desc', limit: number) => {
      const found: OpenAI.Conversations.ConversationItem[] = []
      for await (const item of client.conversations.items.list(id, { order, limit })) found.push(item)
      return found
    }
    const all = await listed('asc', 100)
    expect(all.map(textOf)).toEqual(['user one', 'assistant two', 'user three', 'user four', 'assistant one, two, three, four'])
    for (const limit of [1, 2, 3]) {
      expect(await listed('asc', limit)).toEqual(all)
      expect(await listed('desc', limit)).toEqual(all.toReversed())
    }
    for (const item of all) expect(await client.conversations.items.retrieve(item.id ?? '', { conversation_id: id })).toEqual(item)
    expect(await codeOf(client.conversations.items.retrieve(`msg_${id}.9.0`, { conversation_id: id }))).toEqual([404, 'not_found'])
  })

  test('are deleted from the end, until there is a response', async () => {
    await startOwnWorker(platform, [teller], keys)
    const { id } = await client.conversations.create({ items: [user('one'), user('two'), user('three')] })
    const { data } = await client.conversations.items.list(id, { order: 'asc' })
    const [one = '', two = '', three = ''] = data.map(item => item.id ?? '')
    expect(await codeOf(client.conversations.items.delete(two, { conversation_id: id }))).toEqual([400, 'bad_request'])
    for (const item of [three, two]) expect(await client.conversations.items.delete(item, { conversation_id: id })).toMatchObject({ id })
    await client.conversations.items.create(id, { items: [user('four')] })
    const response = await client.responses.create({ model: 'teller', conversation: id, input: 'five' })
    expect(response.output_text).toBe('one, four, five')
    expect(await codeOf(client.conversations.items.delete(one, { conversation_id: id }))).toEqual([400, 'bad_request'])
  })

  test('have a question and its response between what the turn sent', async () => {
    await startOwnWorker(platform, [payer], keys)
    const asked = await client.responses.create({ model: 'payer', input: 'Pay' })
    const approvals = asked.output.flatMap(item =>
      item.type === 'mcp_approval_request' ? [{ type: 'mcp_approval_response' as const, approval_request_id: item.id, approve: true }] : [],
    )
    await client.responses.create({ model: 'payer', previous_response_id: asked.id, input: approvals })
    const id = asked.conversation?.id ?? ''
    const { data } = await client.conversations.items.list(id, { order: 'asc' })
    const types = data.map(({ type }) => type)
    expect(types[0]).toBe('message')
    expect(types.indexOf('mcp_approval_response')).toBe(types.indexOf('mcp_approval_request') + 1)
    expect(types).toContain('mcp_call')
    for (const item of data) expect(await client.conversations.items.retrieve(item.id ?? '', { conversation_id: id })).toEqual(item)
  })
})

function textOf(item: OpenAI.Conversations.ConversationItem): string {
  const [part] = item.type === 'message' ? item.content : []
  return item.type === 'message' ? `${item.role} ${part && 'text' in part ? part.text : ''}` : item.type
}

async function codeOf(call: PromiseLike<unknown>): Promise<unknown> {
  try {
    return await call
  } catch (error) {
    return error instanceof APIError ? [error.status, error.code] : error
  }
}
