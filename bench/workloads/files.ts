/** A file of 100 MiB, up and down again, beside a bare stream to the same Postgres; and what the API holds of it meanwhile. */
import { randomBytes } from 'node:crypto'
import { heldMemory } from '../../test/support/process/collect-garbage.ts'
import { type Bench, type Figures, interleave, type Results, ratio, scaled, type Workload } from '../bench.ts'
import { startChild } from '../child.ts'
import { measurable } from '../measure/memory.ts'
import { startPlatform } from '../platform.ts'

const MiB = 1024 * 1024
const bare = 'a bare stream to Postgres'

export const files: Workload = {
  name: 'files',
  title: '12. Files: 100 MiB to the store and back',
  columns: [
    { key: 'uploaded', title: 'upload, MiB/s', digits: 1 },
    { key: 'downloaded', title: 'download, MiB/s', digits: 1 },
    { key: 'heldMebibytes', title: 'held by the API, MiB', digits: 1 },
  ],
  goals: [
    { text: 'upload, MiB/s, of a bare stream', atLeast: 0.6, value: results => ratio(results, 'uploaded', 'Rivulet', bare) },
    { text: 'download, MiB/s, of a bare stream', atLeast: 0.6, value: results => ratio(results, 'downloaded', 'Rivulet', bare) },
    { text: 'MiB of a file that the API holds', atMost: 16, value: results => results.get('Rivulet')?.heldMebibytes ?? null },
  ],
  run,
}

async function run(bench: Bench): Promise<Results> {
  const platform = await startPlatform(bench.world, { concurrency: 1, env: measurable })
  const child = await startChild('programs/bare-files.ts', { args: [bench.world.databaseUrl] })
  const size = scaled(bench, 100) * MiB
  try {
    const url = `http://127.0.0.1:${await child.ask<number>('port')}`
    const rows: { name: string; url: string; held?: () => Promise<number> }[] = [
      { name: bare, url: `${url}/v1/files` },
      { name: 'Rivulet', url: `${platform.api.url}/v1/files`, held: () => heldMemory(platform.api) },
    ]
    // The first file loads what a transfer needs; a smaller one does, too.
    for (const row of rows) await transfer(row.url, scaled(bench, 20) * MiB)
    return await interleave(bench, rows, row => transfer(row.url, size, row.held))
  } finally {
    await Promise.all([child.stop(), platform.close()])
  }
}

/** The memory is read in the middle of a second file, so that it costs no time of the first. */
async function transfer(url: string, size: number, held?: () => Promise<number>): Promise<Figures> {
  const began = performance.now()
  const id = await upload(url, size)
  const stored = performance.now()
  await download(`${url}/${id}`, size)
  const uploaded = size / MiB / ((stored - began) / 1_000)
  const downloaded = size / MiB / ((performance.now() - stored) / 1_000)
  if (!held) return { uploaded, downloaded }
  const before = await held()
  const during: number[] = []
  await upload(url, size, async () => void during.push((await held()) - before))
  return { uploaded, downloaded, heldMebibytes: Math.max(...during) / MiB }
}

async function upload(url: string, size: number, inTheMiddle = async () => {}): Promise<string> {
  const piece = randomBytes(MiB)
  let sent = 0
  const body = new ReadableStream({
    async pull(controller) {
      if (sent === Math.floor(size / MiB / 2) * MiB) await inTheMiddle()
      controller.enqueue(piece)
      sent += MiB
      if (sent === size) controller.close()
    },
  })
  const response = await fetch(url, { method: 'POST', body, duplex: 'half' })
  if (!response.ok) throw new Error(`POST ${url} returned ${response.status}`)
  const { file } = (await response.json()) as { file: { id: string } }
  return file.id
}

async function download(url: string, size: number): Promise<void> {
  const response = await fetch(url)
  let received = 0
  for await (const chunk of response.body ?? []) received += chunk.length
  if (received !== size) throw new Error(`${received} of ${size} bytes were returned`)
}
