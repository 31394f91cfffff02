/** Whatever a route throws: no text that is not ours leaves the process. */
import { RivuletError } from '@rivulet/protocol'
import fastify from 'fastify'
import { expect, test } from 'vitest'
import { handleErrors } from './errors.ts'

const secret = 'connect ECONNREFUSED postgres://app:hunter2@db-7.internal:5432'
const asError = (fields: object) => Object.assign(new Error(secret), fields)

test('the message of an error with details has the first of them, without the input', async () => {
  const app = fastify()
  handleErrors(app)
  const details = [
    { path: `/${secret}/agent`, reason: 'Must be a text' },
    { path: '/input', reason: 'Is missing' },
  ]
  app.get('/', () => Promise.reject(new RivuletError('validation_failed', 'Request validation failed', { details })))
  const { error } = (await app.inject('/')).json()
  expect(error.message).toMatch(/^Request validation failed: \/.*agent: Must be a text$/)
  expect(error.message).not.toContain('hunter2')
  expect(error.details).toHaveLength(2)
})

test.each<[string, unknown, number, string]>([
  ['an exception', new Error(secret), 500, 'internal'],
  ['an exception that brings a status', asError({ statusCode: 502 }), 500, 'internal'],
  ['a refusal of a library', asError({ statusCode: 418, code: 'ETEAPOT' }), 400, 'bad_request'],
  ['a refusal of the framework', asError({ code: 'FST_ERR_BAD_URL' }), 400, 'bad_url'],
  ['a body of the framework’s', asError({ code: 'FST_ERR_CTP_BODY_TOO_LARGE' }), 413, 'body_too_large'],
  ['a database that is unavailable', asError({ code: 'ECONNREFUSED' }), 503, 'dependency_unavailable'],
  ['a Redis that is unavailable', new Error(`Connection is closed: ${secret}`), 503, 'dependency_unavailable'],
  ['a ready check on a connection that subscribes', new Error("ERR Can't execute 'info': only PING"), 503, 'dependency_unavailable'],
  ['a connection that Redis does not accept', new Error("Ready check failed: ERR Can't execute 'info'"), 503, 'dependency_unavailable'],
  ['a socket of Redis without a reply', new Error('Socket timeout. Expecting data'), 503, 'dependency_unavailable'],
  ['a connection that closes during a command', new Error('Command aborted due to connection close'), 503, 'dependency_unavailable'],
  ['a cluster that disconnects', new Error('Cluster is disconnecting.'), 503, 'dependency_unavailable'],
  ['a cluster without a server', new Error('None of startup nodes is available'), 503, 'dependency_unavailable'],
  ['a login that Redis no longer has', new Error('NOAUTH Authentication required.'), 503, 'dependency_unavailable'],
  ['a command that Redis rejects', new Error('ERR syntax error'), 500, 'internal'],
  ['a text', secret, 500, 'internal'],
  ['an object', { message: secret }, 500, 'internal'],
  ['an error that ends turns, not requests', new RivuletError('agent_error', secret), 500, 'internal'],
  ['one with a text for us', new RivuletError('overloaded', secret, { publicMessage: 'There is no room' }), 503, 'overloaded'],
])('%s', async (_, thrown, status, code) => {
  const app = fastify()
  handleErrors(app)
  app.get('/', () => Promise.reject(thrown))
  const { statusCode, body } = await app.inject('/')
  expect([statusCode, JSON.parse(body)]).toEqual([status, { error: { code, message: expect.any(String), requestId: expect.any(String) } }])
  expect(body).not.toMatch(/hunter2|db-7|ECONNREFUSED/)
})
