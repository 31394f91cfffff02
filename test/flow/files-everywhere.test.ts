/** A file from a caller to an agent and back: the client, the SDK and the command line. */
import { createHash, randomBytes, randomUUID } from 'node:crypto'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createClient, type UploadProgress } from '@rivulet/client'
import { defineAgent } from '@rivulet/worker'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { startOwnWorker } from '../support/platform/own-worker.ts'
import { type Platform, startPlatform } from '../support/platform/platform.ts'
import { runCli } from '../support/terminal.ts'

const sha256 = (bytes: Uint8Array) => createHash('sha256').update(bytes).digest('hex')
const refer = (file: string) => ({ type: 'media' as const, mimeType: 'application/pdf', file })

/** Reads the files of its input and of its history, says what they are, and sends the last one back. */
const librarian = defineAgent('librarian', async turn => {
  const contents = (await turn.history()).map(({ content }) => content)
  for (const content of contents) {
    if (content.type !== 'media' || content.file === undefined) continue
    const file = await turn.readFile(content.file)
    const bytes = await file.bytes()
    await turn.send(`${file.name} ${file.mimeType} ${file.size} ${sha256(bytes)}`)
    await turn.sendFile(halves(bytes), { mimeType: 'application/pdf', name: `copy of ${file.name}` })
  }
})

async function* halves(bytes: Uint8Array): AsyncGenerator<Uint8Array> {
  yield bytes.subarray(0, bytes.length / 2)
  yield bytes.subarray(bytes.length / 2)
}

/** Asks for a file that is not of its task. */
const nosy = defineAgent('nosy', async turn => {
  await turn.readFile(String(turn.params)).catch(error => turn.send(`${error.code}: ${error.message}`))
})

let platform: Platform
beforeAll(async () => {
  platform = await startPlatform()
})
afterAll(() => platform.close())

test('a file goes to an agent and comes back', async () => {
  await startOwnWorker(platform, [librarian, nosy])
  const client = createClient({ url: platform.url })
  const bytes = randomBytes(700_001)
  const progress: UploadProgress[] = []
  const blob = new Blob([new Uint8Array(bytes)], { type: 'application/pdf' })
  const file = await client.files.upload(blob, { name: 'naïve.pdf', onProgress: at => progress.push(at) })
  expect(file).toMatchObject({ name: 'naïve.pdf', mimeType: 'application/pdf', size: bytes.length, sha256: sha256(bytes) })
  expect(progress.at(-1)).toEqual({ sent: bytes.length, total: bytes.length })
  expect(progress.map(({ sent }) => sent)).toEqual(progress.map(({ sent }) => sent).toSorted((a, b) => a - b))

  const { task } = await client.run({ agent: 'librarian', input: refer(file.id) })
  const messages = await platform.client.messages(task.id)
  const [, said, copy] = messages.map(({ content }) => content)
  expect(said).toMatchObject({ text: `naïve.pdf application/pdf ${bytes.length} ${sha256(bytes)}` })
  expect(copy).toEqual({ ...refer(expect.any(String) as unknown as string), name: 'copy of naïve.pdf', size: bytes.length })
  const id = copy?.type === 'media' ? (copy.file ?? '') : ''
  const download = await client.files.download(id)
  expect([download.mimeType, download.size, sha256(await download.bytes())]).toEqual(['application/pdf', bytes.length, sha256(bytes)])
  const part = await client.files.download(id, { range: { first: 1, last: 3 } })
  expect(Buffer.from(await part.bytes()).equals(bytes.subarray(1, 4))).toBe(true)
  await expect(client.files.delete(id)).rejects.toMatchObject({ code: 'file_in_use' })
})

describe('the client', () => {
  test('sends bytes, streams and generators, and says how far it is', async () => {
    const { files } = createClient({ url: platform.url })
    const bytes = new Uint8Array(randomBytes(10_000))
    for (const source of [bytes, new Blob([bytes]), new Blob([bytes]).stream(), halves(bytes)]) {
      const sent: (number | null)[] = []
      const { sha256: checksum } = await files.upload(source, { onProgress: at => sent.push(at.sent) })
      expect([checksum, sent.at(-1)]).toEqual([sha256(bytes), bytes.length])
    }
  })

  test('reports what is wrong, and stops when its caller does', async () => {
    const { files } = createClient({ url: platform.url })
    await expect(files.upload(new Uint8Array(3), { name: '../x' })).rejects.toMatchObject({ code: 'validation_failed' })
    await expect(files.download(randomUUID())).rejects.toMatchObject({ code: 'not_found' })
    const leaving = new AbortController()
    const endless = new ReadableStream<Uint8Array>({
      pull(controller) {
        controller.enqueue(new Uint8Array(1_000))
        leaving.abort(new Error('left'))
      },
    })
    await expect(files.upload(endless, { signal: leaving.signal })).rejects.toThrow('left')
  })

  test('deletes a file', async () => {
    const { files } = createClient({ url: platform.url })
    const { id } = await files.upload(new Uint8Array(3))
    await files.delete(id)
    await expect(files.download(id)).rejects.toMatchObject({ code: 'not_found' })
  })
})

test('an agent cannot read a file that its task does not refer to, and the error says so', async () => {
  await startOwnWorker(platform, [librarian, nosy])
  const { files } = createClient({ url: platform.url })
  const { id } = await files.upload(new Uint8Array(3))
  for (const params of [id, randomUUID()]) {
    const { messages } = await platform.client.finishedTask({ agent: 'nosy', params })
    expect(messages.map(({ content }) => content)).toMatchObject([{ text: 'not_found: The task refers to no such file' }])
  }
})

test('rivulet run sends files with the text, in one command', async () => {
  await startOwnWorker(platform, [librarian, nosy])
  const folder = mkdtempSync(join(tmpdir(), 'rivulet-files-'))
  try {
    const path = join(folder, 'report.pdf')
    writeFileSync(path, 'a report')
    const { stdout, code } = await runCli(['run', 'librarian', 'what is in it?', '--file', path, '--url', platform.url])
    expect([code, stdout]).toEqual([0, expect.stringContaining(`report.pdf application/pdf 8 ${sha256(Buffer.from('a report'))}`)])
    const missing = await runCli(['run', 'librarian', 'x', '--file', join(folder, 'none.pdf'), '--url', platform.url])
    expect(missing.code).not.toBe(0)
    expect(missing.stderr).toContain('none.pdf')
  } finally {
    rmSync(folder, { recursive: true })
  }
})
