/** Messages that refer to files: what keeps a file, what lets it go, and large values that become files by themselves. */
import { randomBytes, randomUUID } from 'node:crypto'
import { type Content, data, delta, type File, type Message, media, messagesOf, toolRequest, toolResponse } from '@rivulet/protocol'
import { defineAgent } from '@rivulet/worker'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { full, scripted } from '../support/agents/scripts.ts'
import { createGate } from '../support/gate.ts'
import { twoContentsIn } from '../support/judge/one-content.ts'
import { faultsOf } from '../support/judge/task-laws.ts'
import { startOwnWorker } from '../support/platform/own-worker.ts'
import { type Platform, startPlatform } from '../support/platform/platform.ts'
import type { Accepted, ErrorReply, Reply } from '../support/platform/platform-client.ts'
import { until } from '../support/until.ts'
import { type Viewer, watch } from '../support/viewers/viewer.ts'

const KiB = 1024

let platform: Platform
beforeAll(async () => {
  platform = await startPlatform()
})
afterAll(() => platform.close())

async function stored(bytes: Buffer = randomBytes(10), headers: Record<string, string> = {}): Promise<File> {
  const { status, body } = await platform.client.send<{ file: File }>('POST', '/v1/files', { body: new Uint8Array(bytes), headers })
  expect(status).toBe(201)
  return body.file
}

const refer = (file: string, more: object = {}) => ({ type: 'media', mimeType: 'application/pdf', file, ...more })
const remove = (file: string) => platform.client.send('DELETE', `/v1/files/${file}`)
const statusOf = async (file: string) => (await fetch(`${platform.url}/v1/files/${file}`, { headers: { range: 'bytes=0-0' } })).status
const codeOf = ({ status, body }: Reply) => [status, (body as ErrorReply).error?.code]

describe('an input that refers to a file', () => {
  test('has the size of the file, and its name unless it says another', async () => {
    const file = await stored(randomBytes(77), { 'x-filename': 'report.pdf' })
    const one = await platform.client.createTask({ agent: 'echo', input: refer(file.id, { size: 5 }) })
    expect(one.turn.input).toEqual(refer(file.id, { name: 'report.pdf', size: 77 }))
    const other = await platform.client.createTask({ agent: 'echo', input: refer(file.id, { name: 'other.pdf' }) })
    expect(other.turn.input).toMatchObject({ name: 'other.pdf', size: 77 })
    await platform.client.waitForEnd(one.task.id)
    const [asked] = await platform.client.messages(one.task.id)
    expect(asked?.content).toEqual(one.turn.input)
  })

  test('keeps the file until the last such task is removed; nothing can be deleted before', async () => {
    const file = await stored()
    const name = randomUUID()
    const { task: first } = await platform.client.createTask({ agent: 'echo', name, input: refer(file.id) })
    const { task: second } = await platform.client.createTask({ agent: 'echo', input: 'hello' })
    await platform.client.addTurn(second.id, { input: refer(file.id) })
    for (const { id } of [first, second]) await platform.client.waitForEnd(id)
    expect(codeOf(await remove(file.id))).toEqual([409, 'file_in_use'])
    expect((await platform.client.remove(first.id)).status).toBe(204)
    expect([await statusOf(file.id), ...codeOf(await remove(file.id))]).toEqual([206, 409, 'file_in_use'])
    expect((await platform.client.remove(second.id)).status).toBe(204)
    expect(await statusOf(file.id)).toBe(404)
    await until('its bytes are gone', async () => (await bytesLeft(file.id)) === 0)
  })

  test('and to another task at the same moment as that is removed never loses the file, and never keeps it for ever', async () => {
    for (let i = 0; i < 10; i += 1) {
      const file = await stored()
      const tasks = await Promise.all([1, 2].map(() => platform.client.createTask({ agent: 'echo', input: refer(file.id) })))
      for (const { task } of tasks) await platform.client.waitForEnd(task.id)
      const removed = await Promise.all(tasks.map(({ task }) => platform.client.remove(task.id)))
      expect(removed.map(({ status }) => status)).toEqual([204, 204])
      expect(await statusOf(file.id)).toBe(404)
    }
  })

  test.each([
    ['unknown', () => Promise.resolve<string>(randomUUID())],
    [
      'deleted',
      async () => {
        const { id } = await stored()
        await remove(id)
        return id
      },
    ],
  ])('that is %s is refused, with its path, and leaves nothing', async (_, make) => {
    const id = await make()
    for (const [body, path] of [
      [{ agent: 'echo', input: refer(id) }, '/input/file'],
      [{ agent: 'echo', name: randomUUID(), input: refer(id) }, '/input/file'],
      [
        {
          agent: 'echo',
          history: [
            { author: 'user', content: 'a' },
            { author: 'agent', content: refer(id) },
          ],
        },
        '/history/1/content/file',
      ],
    ] as const) {
      const { status, body: answer } = await platform.client.post<ErrorReply>('/v1/tasks', body)
      expect([status, answer.error.code, answer.error.details]).toEqual([400, 'validation_failed', [{ path, reason: 'No such file' }]])
    }
  })

  test('and has data or an address as well, or neither, is refused', async () => {
    const file = await stored()
    for (const input of [
      refer(file.id, { data: 'aaaa' }),
      refer(file.id, { url: 'https://a.example' }),
      refer('nonsense'),
      { type: 'media', mimeType: 'a/b' },
    ])
      expect(codeOf(await platform.client.post('/v1/tasks', { agent: 'echo', input }))).toEqual([400, 'validation_failed'])
  })

  test('is copied with its task', async () => {
    const file = await stored()
    const { task } = await platform.client.createTask({ agent: 'echo', input: refer(file.id) })
    await platform.client.waitForEnd(task.id)
    const { body } = await platform.client.post<Accepted>(`/v1/tasks/${task.id}/fork`, {})
    await platform.client.remove(task.id)
    expect(await statusOf(file.id)).toBe(206)
    await platform.client.remove(body.task.id)
    expect(await statusOf(file.id)).toBe(404)
  })
})

describe('an agent that refers to a file', () => {
  test('keeps it, as an input does', async () => {
    const file = await stored()
    const { task } = await platform.client.createTask(scripted([full(0, refer(file.id))]))
    await platform.client.waitForEnd(task.id)
    expect(codeOf(await remove(file.id))).toEqual([409, 'file_in_use'])
    expect(await faultsOf(platform, task.id)).toEqual([])
    await platform.client.remove(task.id)
    expect(await statusOf(file.id)).toBe(404)
  })

  test('that is not there has its result rejected', async () => {
    const { turns } = await platform.client.finishedTask(scripted([full(0, refer(randomUUID()))]))
    expect(turns[0]).toMatchObject({ status: 'failed', error: { code: 'result_rejected' } })
  })
})

describe('a large value', () => {
  const table = Array.from({ length: 400 }, (_, i) => ({ id: i, text: `row ${i} `.repeat(100) }))
  const picture = randomBytes(65 * KiB).toString('base64')
  const large: [string, Content, (stored: Content) => void][] = [
    [
      'media',
      media('image/png', picture),
      content => expect(content).toEqual({ type: 'media', mimeType: 'image/png', file: expect.any(String), size: 65 * KiB }),
    ],
    [
      'data',
      data({ table }),
      content => expect(content).toMatchObject({ type: 'data', data: { table: [{ id: 0 }, { id: 1 }, { id: 2 }, '…'] } }),
    ],
    [
      'tool_response',
      toolResponse('c', 'query', table),
      content => expect(content).toMatchObject({ callId: 'c', content: [{ id: 0 }, { id: 1 }, { id: 2 }, { id: 3 }, { id: 4 }, '…'] }),
    ],
  ]

  test.each(large)(
    'of %s becomes a file at the commit, with a preview in its place, and is put back for readers that want it',
    async (_, content, check) => {
      const { task, messages } = await platform.client.finishedTask(scripted([full(0, content)]))
      const [slim] = messages.filter(({ author }) => author === 'agent')
      check(slim?.content ?? data())
      expect(JSON.stringify(slim).length).toBeLessThan(8 * KiB)
      const { body } = await platform.client.get<{ data: Message[] }>(`/v1/tasks/${task.id}/messages?inline=true`)
      expect(body.data.map(message => message.content)).toEqual([content])
      const file = slim && 'file' in slim.content ? (slim.content.file ?? '') : ''
      expect(await statusOf(file)).toBe(206)
      await platform.client.remove(task.id)
      expect(await statusOf(file)).toBe(404)
    },
  )

  test('is there again for the next turn of the agent', async () => {
    // A response needs its call, or the history leaves it out.
    const said = [toolRequest('c', 'query', {}), ...large.map(([, content]) => content)]
    const seen: Content[] = []
    const hoarder = defineAgent('hoarder', async function* (turn) {
      const history = await turn.history()
      seen.push(...history.filter(({ author }) => author === 'agent').map(({ content }) => content))
      if (seen.length === 0) for (const [i, content] of said.entries()) yield { type: 'full', index: i, content }
      else yield delta(0, 'again')
    })
    await startOwnWorker(platform, [hoarder])
    const { task } = await platform.client.createTask({ agent: 'hoarder', input: 'one' })
    await platform.client.waitForEnd(task.id)
    await platform.client.addTurn(task.id, { input: 'two' })
    await platform.client.waitForEnd(task.id)
    expect(seen).toEqual(said)
  })

  test('is whole for a viewer until the end of its turn, and a file for those that join later, in every API', async () => {
    const [firstEnd, secondEnd] = [createGate(), createGate()]
    const said = large.map(([, content]) => content)
    const painter = defineAgent('painter', async function* (turn) {
      if (turn.number === 1) for (const [index, content] of said.entries()) yield { type: 'full', index, content }
      else yield delta(0, 'again')
      await (turn.number === 1 ? firstEnd : secondEnd).opened
    })
    await startOwnWorker(platform, [painter])
    const urls = [platform.url, (await platform.startApi()).url]
    const { task } = await platform.client.createTask({ agent: 'painter', input: 'one' })
    const join = () => urls.map(url => watch(task.id, { urls: [url], query: '?follow=true' }))
    const contentsOf = (viewer: Viewer) =>
      messagesOf(viewer.state()).flatMap(({ author, content }) => (author === 'agent' ? [content] : []))

    // They join before the end, so both APIs have read the rows before there are files.
    const early = join()
    for (const viewer of early) await viewer.until('all values', () => contentsOf(viewer).length === said.length)
    const midway = join()
    for (const viewer of midway) await viewer.until('a snapshot', ({ frames }) => frames().length > 0)
    for (const viewer of [...early, ...midway]) expect(contentsOf(viewer)).toEqual(said)

    firstEnd.open()
    const watching = [...early, ...midway]
    for (const viewer of watching) await viewer.until('the end of the turn', () => viewer.state().turns[0]?.status === 'completed')
    const rows = await platform.client.messages(task.id)
    const late = join()
    for (const viewer of late) await viewer.until('a snapshot', ({ frames }) => frames().length > 0)
    for (const viewer of late) expect(messagesOf(viewer.state())).toEqual(rows)

    await platform.client.addTurn(task.id, { input: 'two' })
    for (const viewer of watching) await viewer.until('the second turn', ({ text }) => text() === 'again')
    const latest = join()
    for (const viewer of latest) await viewer.until('a snapshot', ({ frames }) => frames().length > 0)
    for (const viewer of latest) expect(messagesOf(viewer.state()).slice(0, rows.length)).toEqual(rows)
    secondEnd.open()
    expect(twoContentsIn(await Promise.all([...watching, ...late, ...latest].map(viewer => viewer.stop())))).toEqual([])
  })

  test('below its limit stays where it is', async () => {
    const small = [media('image/png', randomBytes(64 * KiB).toString('base64')), data('a'.repeat(250 * KiB))]
    const { messages } = await platform.client.finishedTask(scripted(small.map((content, i) => full(i, content))))
    expect(messages.filter(({ author }) => author === 'agent').map(({ content }) => content)).toEqual(small)
  })
})

async function bytesLeft(file: string): Promise<number> {
  const { rows } = await platform.pg.query('select from file_chunks where file = $1 union all select from loose_files where id = $1', [
    file,
  ])
  return rows.length
}
