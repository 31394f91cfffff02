/** Files in Postgres with nothing around them: a body is inserted in pieces of 256 KiB, and selected again, by prepared statements of one connection each. */
import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import pg from 'pg'
import { handleRequests } from '../child.ts'

const pieceBytes = 256 * 1024
const [databaseUrl = ''] = process.argv.slice(2)
const pool = new pg.Pool({ connectionString: databaseUrl, max: 10 })
await pool.query('create table if not exists bench_files (file uuid, number int, bytes bytea not null, primary key (file, number))')

const server = createServer((request, response) => void (request.method === 'POST' ? store(request, response) : load(request, response)))
server.listen(0, '127.0.0.1')
await once(server, 'listening')
handleRequests({ port: () => (server.address() as AddressInfo).port })
process.on('SIGTERM', () => process.exit(0))

async function store(request: IncomingMessage, response: ServerResponse): Promise<void> {
  const file = randomUUID()
  const piece = Buffer.alloc(pieceBytes)
  let [filled, number] = [0, 0]
  for await (const chunk of request as AsyncIterable<Buffer>) {
    for (let at = 0; at < chunk.length; ) {
      const taken = chunk.copy(piece, filled, at)
      filled += taken
      at += taken
      if (filled === pieceBytes) await write()
    }
  }
  if (filled > 0) await write()
  response.end(JSON.stringify({ file: { id: file } }))

  async function write(): Promise<void> {
    const values = [file, number, piece.subarray(0, filled)]
    await pool.query({ name: 'write', text: 'insert into bench_files values ($1, $2, $3)', values })
    filled = 0
    number += 1
  }
}

async function load({ url = '' }: IncomingMessage, response: ServerResponse): Promise<void> {
  const file = url.slice(url.lastIndexOf('/') + 1)
  for (let number = 0; ; number += 1) {
    const text = "select encode(bytes, 'base64') as bytes from bench_files where file = $1 and number = $2"
    const { rows } = await pool.query<{ bytes: string }>({ name: 'read', text, values: [file, number] })
    if (!rows[0]) break
    if (!response.write(Buffer.from(rows[0].bytes, 'base64'))) await once(response, 'drain')
  }
  response.end()
}
