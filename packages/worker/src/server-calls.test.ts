/** Questions to a server that does not answer: how long they are asked, and what ends them. */
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { expect, onTestFinished, test } from 'vitest'
import { until } from '../../../test/support/until.ts'
import { createServerCalls } from './server-calls.ts'
import { abortReason, turnOver } from './turn/turn-over.ts'

test('a question is asked until it is answered', async () => {
  const { calls, asked } = await serve(count => (count < 3 ? null : '{"result":"settled"}'))
  expect(await calls.claim({ worker: 'w', turnId: 't', claimId: 'c' }, new AbortController().signal)).toEqual({ result: 'settled' })
  expect(asked()).toBe(3)
})

test('a response of a proxy is not a response of the server', async () => {
  const { calls, asked } = await serve(
    count => (count < 3 ? '<html>Bad Gateway</html>' : '{"result":"settled"}'),
    '',
    count => (count < 3 ? 502 : 200),
  )
  expect(await calls.claim({ worker: 'w', turnId: 't', claimId: 'c' }, new AbortController().signal)).toEqual({ result: 'settled' })
  expect(asked()).toBe(3)
  const gateway = await serve(
    () => '<html>Bad Gateway</html>',
    '',
    () => 502,
  )
  await expect(gateway.calls.hello({ worker: 'w', agents: [] })).rejects.toThrow('hello returned 502')
})

test.each(['', '/', '/under/a/path', '/under/a/path/'])('a server at %j is asked there', async path => {
  const { calls, asked } = await serve(
    (_, url) => (url === `${path.replace(/\/$/, '')}/internal/claim` ? '{"result":"settled"}' : null),
    path,
  )
  expect(await calls.claim({ worker: 'w', turnId: 't', claimId: 'c' }, new AbortController().signal)).toEqual({ result: 'settled' })
  expect(asked()).toBe(1)
})

test('of several servers, one that fails or is gone is left, and the others are called', async () => {
  const claim = { worker: 'w', turnId: 't', claimId: 'c' }
  const failing = await serve(() => null)
  const sound = await serve(() => '{"result":"settled"}')
  const calls = createServerCalls({ url: `http://127.0.0.1:1, ${failing.url},${sound.url}/` })
  for (let i = 0; i < 5; i += 1) expect(await calls.claim(claim, new AbortController().signal)).toEqual({ result: 'settled' })
  expect(sound.asked()).toBe(5)
  expect(failing.asked()).toBeLessThan(2)
})

test('a question that its turn no longer has is ended by its signal, and says why', async () => {
  const abort = new AbortController()
  const { calls } = await serve(count => {
    if (count === 2) abort.abort(abortReason(turnOver('lost')))
    return null
  })
  await expect(calls.history({ turnId: 't', claimId: 'c' }, abort.signal)).rejects.toMatchObject({
    name: 'AbortError',
    cause: { code: 'turn_over' },
  })
})

test('however many turns ask, the server has a few of their questions at a time', async () => {
  let respondToClaims = () => {}
  const replied = new Promise<void>(resolve => {
    respondToClaims = resolve
  })
  const { calls, asked } = await serve(async () => {
    await replied
    return '{"result":"settled"}'
  })
  const claims = Array.from({ length: 500 }, () => calls.claim({ worker: 'w', turnId: 't', claimId: 'c' }, new AbortController().signal))
  await until('as many are asked as may be', () => asked() === 64)
  respondToClaims()
  await Promise.all(claims)
  expect(asked()).toBe(500)
})

type Respond = (count: number, path?: string) => string | null | Promise<string>

/** A server that returns these responses, or 503 for null. */
async function serve(respond: Respond, path = '', statusOf: (count: number) => number = () => 200) {
  let count = 0
  const server = createServer(async (request, response) => {
    request.resume()
    count += 1
    const given = await respond(count, request.url)
    response.writeHead(given === null ? 503 : statusOf(count))
    response.end(given ?? '{"error":{"code":"dependency_unavailable","message":"not now"}}')
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => {
    server.closeAllConnections()
    server.close()
  })
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}${path}`
  return { url, calls: createServerCalls({ url }), asked: () => count }
}
