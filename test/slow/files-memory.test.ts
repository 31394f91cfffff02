/** 100 MiB through an API that holds less than 16 MiB of it, however slow the other side is; and a snapshot that has references only. */
import { createHash, randomBytes } from 'node:crypto'
import { request as httpRequest, type IncomingMessage } from 'node:http'
import type { File } from '@rivulet/protocol'
import { expect, test } from 'vitest'
import { withPlatform } from '../support/platform/platform.ts'
import { collectingOptions, heldMemory } from '../support/process/collect-garbage.ts'

const MiB = 1024 * 1024
const size = 100 * MiB

test('an upload and a download of 100 MiB move the memory of the API by less than 16 MiB', { timeout: 240_000 }, async () => {
  await withPlatform({ workers: 0, env: collectingOptions }, async ({ apis: [api], url }) => {
    if (!api) throw new Error('There is no API')
    const piece = randomBytes(MiB)
    // The first one loads what an upload needs.
    await fetch(`${url}/v1/files`, { method: 'POST', body: new Uint8Array(piece) })
    const before = await heldMemory(api)
    const held: number[] = []
    const look = async () => void held.push((await heldMemory(api)) - before)

    const sent = httpRequest(`${url}/v1/files`, { method: 'POST', headers: { 'content-length': size } })
    const answered = new Promise<IncomingMessage>((resolve, reject) => sent.on('response', resolve).on('error', reject))
    for (let at = 0; at < size; at += MiB) {
      // Waits until the API has taken it.
      await new Promise(resolve => sent.write(piece, resolve))
      if (at % (25 * MiB) === 0) await look()
    }
    sent.end()
    const { file } = JSON.parse((await answered).read() ?? (await text(await answered))) as { file: File }
    expect(file.size).toBe(size)

    const hash = createHash('sha256')
    let got = 0
    const response = await new Promise<IncomingMessage>(resolve => httpRequest(`${url}/v1/files/${file.id}`, resolve).end())
    for await (const chunk of response) {
      hash.update(chunk)
      const isMoment = Math.floor(got / (25 * MiB)) < Math.floor((got + chunk.length) / (25 * MiB))
      got += chunk.length
      // Meanwhile this client reads nothing.
      if (isMoment) await look()
    }
    expect([got, hash.digest('hex')]).toEqual([size, file.sha256])
    expect(held.length).toBeGreaterThanOrEqual(7)
    expect(Math.max(...held)).toBeLessThan(16 * MiB)
  })
})

test('a viewer of a task with a file of 50 MiB gets as few bytes as one of a task without it', { timeout: 240_000 }, async () => {
  await withPlatform({}, async ({ client, url }) => {
    const body = new Uint8Array(randomBytes(50 * MiB))
    const { file } = (await (await fetch(`${url}/v1/files`, { method: 'POST', body })).json()) as { file: File }
    const inputs = ['about this', { type: 'media', mimeType: 'application/octet-stream', file: file.id }]
    const bytes: number[] = []
    for (const input of [inputs.slice(0, 1), inputs]) {
      const { task } = await client.finishedTask({ agent: 'scripted', input, params: { steps: [] } })
      bytes.push((await (await fetch(`${url}/v1/tasks/${task.id}/events`, { headers: { accept: 'text/event-stream' } })).text()).length)
    }
    const [without = 0, withFile = 0] = bytes
    expect(without).toBeGreaterThan(100)
    expect(withFile - without).toBeLessThan(2_000)
  })
})

async function text(response: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = []
  for await (const chunk of response) chunks.push(chunk as Buffer)
  return Buffer.concat(chunks).toString()
}
