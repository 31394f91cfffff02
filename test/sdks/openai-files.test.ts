/** OpenAI's SDK, unmodified: the files of a tenant, and agents that get them as inputs. */
import { defineAgent } from '@rivulet/worker'
import OpenAI, { NotFoundError, toFile } from 'openai'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { startOwnWorker } from '../support/platform/own-worker.ts'
import { type Platform, startPlatform } from '../support/platform/platform.ts'

const env = { RIVULET_KEY: 'the-root-key-of-this-test', RIVULET_WORKER_KEY: 'the-worker-key-of-this-test' }
let platform: Platform
let client: OpenAI

/** Sends what it knows of each file of its input, and its text. */
const reader = defineAgent('reader', async turn => {
  for (const content of turn.inputs) {
    if (content.type !== 'media' || !content.file) continue
    const text = Buffer.from(await (await turn.readFile(content.file)).bytes()).toString()
    await turn.send(`${content.name} ${content.mimeType} ${content.size} ${text}`)
  }
})

beforeAll(async () => {
  platform = await startPlatform({ apis: 2, workers: 0, env })
  client = new OpenAI({ baseURL: `${platform.url}/openai/v1`, apiKey: env.RIVULET_KEY, maxRetries: 0 })
})
afterAll(() => platform.close())

test('is created, listed, retrieved, downloaded and deleted', async () => {
  const created = await client.files.create({ file: await toFile(Buffer.from('one, two'), 'n\u00fcmbers "1".txt'), purpose: 'assistants' })
  expect(created).toMatchObject({ object: 'file', bytes: 8, filename: 'n\u00fcmbers "1".txt', purpose: 'user_data', status: 'processed' })
  expect(await client.files.retrieve(created.id)).toEqual(created)
  expect(await (await client.files.content(created.id)).text()).toBe('one, two')
  expect(await client.files.delete(created.id)).toEqual({ id: created.id, object: 'file', deleted: true })
  await expect(client.files.retrieve(created.id)).rejects.toThrow(NotFoundError)
  await expect(client.files.create({ file: await toFile(Buffer.from('x'), 'x'), purpose: 'fine-tune' })).rejects.toThrow('/purpose')
})

test('the list goes on page by page, newest first or oldest first', async () => {
  const ids: string[] = []
  for (const name of ['a', 'b', 'c'])
    ids.push((await client.files.create({ file: await toFile(Buffer.from(name), name), purpose: 'user_data' })).id)
  const listed = async (query: OpenAI.FileListParams) => {
    const found: string[] = []
    for await (const { id } of client.files.list(query)) found.push(id)
    return found
  }
  expect(await listed({ limit: 2 })).toEqual(ids.toReversed())
  expect(await listed({ limit: 1, order: 'asc' })).toEqual(ids)
  expect(await listed({ after: ids[1] ?? '' })).toEqual(ids.slice(0, 1))
  expect(await listed({ purpose: 'batch' })).toEqual([])
})

test('an agent gets a file by its id, with its name and its type, in responses and in chat', async () => {
  await startOwnWorker(platform, [reader], { key: env.RIVULET_WORKER_KEY, callerKey: env.RIVULET_KEY })
  const file = await toFile(Buffer.from('one'), 'one.txt', { type: 'text/plain' })
  const { id } = await client.files.create({ file, purpose: 'user_data' })
  const response = await client.responses.create({
    model: 'reader',
    input: [
      {
        role: 'user',
        content: [
          { type: 'input_text', text: 'Read it' },
          { type: 'input_file', file_id: id },
        ],
      },
    ],
  })
  expect(response.output_text).toBe('one.txt text/plain 3 one')
  const { data } = await client.responses.inputItems.list(response.id)
  expect(data).toMatchObject([{ content: [{ type: 'input_text' }] }, { content: [{ type: 'input_file', file_id: id }] }])
  const chat = await client.chat.completions.create({
    model: 'reader',
    messages: [{ role: 'user', content: [{ type: 'file', file: { file_id: id } }] }],
  })
  expect(chat.choices[0]?.message.content).toBe('one.txt text/plain 3 one')
  await expect(client.files.delete(id)).rejects.toThrow('refers to this file')
})
