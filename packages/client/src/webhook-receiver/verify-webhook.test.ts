import { createHmac } from 'node:crypto'
import { expect, test } from 'vitest'
import { verifyWebhook } from './verify-webhook.ts'

// By openssl: the bytes of the secret as the key, and id, time and body joined by dots.
const secret = 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw'
const body = '{"test": 2432232314}'
const headers = {
  'webhook-id': 'msg_p5jXN8AQM9LWM0D4loKWxJek',
  'webhook-timestamp': '1614265330',
  'webhook-signature': 'v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=',
}
const now = new Date(1_614_265_330_000)
const other = `whsec_${Buffer.from('another secret').toString('base64')}`

test('a request with the signature of the secret gives its event, in every form of headers and body', async () => {
  const event = { test: 2432232314 }
  expect(await verifyWebhook(secret, headers, body, { now })).toEqual(event)
  expect(await verifyWebhook(secret, new Headers(headers), new TextEncoder().encode(body), { now })).toEqual(event)
  const ofNode = { 'Webhook-Id': [headers['webhook-id']], 'Webhook-Timestamp': headers['webhook-timestamp'] }
  expect(await verifyWebhook(secret, { ...ofNode, 'webhook-signature': headers['webhook-signature'] }, body, { now })).toEqual(event)
})

test('during a rotation one of two secrets, and one of two signatures, is enough', async () => {
  expect(await verifyWebhook([other, secret], headers, body, { now })).toMatchObject({ test: 2432232314 })
  const both = `v1,${Buffer.alloc(32).toString('base64')} ${headers['webhook-signature']}`
  expect(await verifyWebhook(secret, { ...headers, 'webhook-signature': both }, body, { now })).toMatchObject({ test: 2432232314 })
})

test('letters beyond ASCII are signed as UTF-8', async () => {
  const text = '{"type":"turn.finished","data":{"name":"Jürgen 🦊"}}'
  const signed = createHmac('sha256', Buffer.from('another secret')).update(`a.1614265330.${text}`).digest('base64')
  const own = { 'webhook-id': 'a', 'webhook-timestamp': '1614265330', 'webhook-signature': `v1,${signed}` }
  expect(await verifyWebhook(other, own, text, { now })).toMatchObject({ data: { name: 'Jürgen 🦊' } })
})

test.each([
  ['another body', secret, headers, body.replace('2', '3'), now],
  ['another secret', other, headers, body, now],
  ['another id', secret, { ...headers, 'webhook-id': 'msg_other' }, body, now],
  ['another time', secret, { ...headers, 'webhook-timestamp': '1614265331' }, body, now],
  [
    'a signature of another version',
    secret,
    { ...headers, 'webhook-signature': headers['webhook-signature'].replace('v1', 'v1a') },
    body,
    now,
  ],
  ['a signature that is no base64', secret, { ...headers, 'webhook-signature': 'v1,%%%' }, body, now],
  ['no signature', secret, { ...headers, 'webhook-signature': undefined }, body, now],
  ['a time that is no number', secret, { ...headers, 'webhook-timestamp': 'now' }, body, now],
  ['a request of six minutes ago', secret, headers, body, new Date(now.getTime() + 360_000)],
  ['a request from the future', secret, headers, body, new Date(now.getTime() - 360_000)],
])('%s is refused', async (_, key, own, text, at) => {
  await expect(verifyWebhook(key, own, text, { now: at })).rejects.toMatchObject({ code: 'unauthorized' })
})

test('a secret of another form is the mistake of the receiver', async () => {
  await expect(verifyWebhook('secret', headers, body, { now })).rejects.toMatchObject({ code: 'bad_call' })
})
