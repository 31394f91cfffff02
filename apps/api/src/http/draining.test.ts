/** A request that reaches a process which is closing, on a connection that was open before. */
import { once } from 'node:events'
import { type AddressInfo, connect } from 'node:net'
import { fastify } from 'fastify'
import { expect, onTestFinished, test } from 'vitest'
import { rejectWhenClosing, servesWhileClosing } from './draining.ts'
import { handleErrors, notFound } from './errors.ts'

test.each(['/v1/tasks', '/nowhere'])(
  'what it asks for meanwhile (%s) is refused as draining, and what it asked for before is answered',
  async path => {
    const app = fastify({ ...servesWhileClosing })
    handleErrors(app)
    rejectWhenClosing(app)
    app.setNotFoundHandler(notFound)
    app.get('/v1/tasks', async () => 'too late')
    let complete: (text: string) => void = () => {}
    const asked = new Promise<void>(resolve => {
      app.get('/slow', () => {
        resolve()
        return new Promise(done => {
          complete = done
        })
      })
    })
    await app.listen({ host: '127.0.0.1', port: 0 })
    const client = connect((app.server.address() as AddressInfo).port, '127.0.0.1')
    onTestFinished(() => void client.destroy())
    let received = ''
    client.on('data', chunk => {
      received += chunk
    })
    client.write('GET /slow HTTP/1.1\r\nhost: a\r\n\r\n')
    await asked
    const closed = app.close()
    client.write(`GET ${path} HTTP/1.1\r\nhost: a\r\n\r\n`)
    await once(app.server, 'request')
    complete('in time')
    await once(client, 'close')
    await closed
    const [before = '', rejection = ''] = received.split(/(?=HTTP\/1\.1 503)/)
    expect(before).toMatch(/^HTTP\/1\.1 200 OK\r\n.*in time$/s)
    expect(rejection.toLowerCase()).toContain('\r\nretry-after: 1\r\n')
    expect(rejection.toLowerCase()).toContain('\r\nconnection: close\r\n')
    expect(JSON.parse(rejection.split('\r\n\r\n')[1] ?? '')).toEqual({
      error: { code: 'draining', message: expect.any(String), requestId: expect.any(String) },
    })
  },
)
