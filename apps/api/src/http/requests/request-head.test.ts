/** Responses that bypass Fastify, on a socket that only our code handles. The responses themselves are rows of test/support/texts/bad-inputs.ts. */
import { type AddressInfo, connect } from 'node:net'
import { fastify } from 'fastify'
import { expect, onTestFinished, test } from 'vitest'
import { checkHeads } from './request-head.ts'

test('a CONNECT whose client is gone before it is answered does no harm', async () => {
  const app = fastify()
  onTestFinished(() => app.close())
  checkHeads(app)
  const met = new Promise<boolean>(resolve =>
    app.server.on('connect', (_request, socket) => {
      // Without a listener, the error would end the process.
      socket.emit('error', new Error('read ECONNRESET'))
      resolve(socket.destroyed)
    }),
  )
  await app.listen({ host: '127.0.0.1', port: 0 })
  const client = connect((app.server.address() as AddressInfo).port, '127.0.0.1')
  client.on('error', () => {})
  client.write('CONNECT a:1 HTTP/1.1\r\nhost: a\r\n\r\n')
  expect(await met).toBe(true)
  client.destroy()
})
