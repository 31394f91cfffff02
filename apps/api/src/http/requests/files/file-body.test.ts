/** An upload that is too slow gives its place to others. */
import { createServer, request } from 'node:http'
import type { AddressInfo } from 'node:net'
import { RivuletError } from '@rivulet/protocol'
import { expect, onTestFinished, test } from 'vitest'
import { readFileBody } from './file-body.ts'

test('an upload below the lowest speed is rejected, although it never stops', async () => {
  const tooLarge = () => new RivuletError('body_too_large', 'The file is too large')
  const limits = { maxBytes: 10_000_000, stallMs: 5_000, tooLarge, signal: new AbortController().signal }
  const server = createServer()
  const result = new Promise<unknown>(resolve => {
    server.once('request', async upload => {
      try {
        for await (const _ of readFileBody(upload, limits));
        resolve('read')
      } catch (error) {
        resolve(error)
      }
    })
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  const sent = request({ port: (server.address() as AddressInfo).port, method: 'POST' })
  sent.on('error', () => {})
  // 20 KiB a second: without a lowest speed, its 200 KiB would arrive.
  let left = 100
  const sending = setInterval(() => {
    left -= 1
    if (left > 0) sent.write(Buffer.alloc(2 * 1_024))
    else sent.end()
  }, 100)
  onTestFinished(() => {
    clearInterval(sending)
    sent.destroy()
    server.close()
  })
  expect(await result).toMatchObject({ code: 'request_timeout' })
})
