/**
 * One attempt to deliver a webhook. It follows no redirect, reads little of the response, and ends after a time, whatever the receiver does. The address
 * is checked where the connection is made, after its name was resolved, so that a name cannot mean a public address for the check and a private one for
 * the connection.
 */
import { lookup } from 'node:dns'
import { request as overHttp } from 'node:http'
import { request as overHttps } from 'node:https'
import type { LookupFunction } from 'node:net'
import { isPrivateAddress, isPrivateHost } from './private-addresses.ts'

export type WebhookResponse = { status: number } | { error: string }

type WebhookCall = {
  url: string
  headers: Record<string, string>
  body: string
  allowPrivate: boolean
  timeoutMs: number
  /** Default: as the machine resolves names. */
  resolve?: Resolve
}

type Address = { address: string; family: number }
export type Resolve = (hostname: string, options: { all: true }, callback: (error: Error | null, addresses: Address[]) => void) => void

/** Of a response, only its status counts. */
const maxResponseBytes = 64 * 1024
const privateError = 'The address is private (WEBHOOK_ALLOW_PRIVATE)'

export function callWebhook({
  url,
  headers,
  body,
  allowPrivate,
  timeoutMs,
  resolve: lookupAll = lookup,
}: WebhookCall): Promise<WebhookResponse> {
  const target = new URL(url)
  if (!allowPrivate && isPrivateHost(target)) return Promise.resolve({ error: privateError })
  const send = target.protocol === 'https:' ? overHttps : overHttp
  return new Promise(resolve => {
    let result: WebhookResponse = { error: 'The receiver closed the connection' }
    const isTooLate = AbortSignal.timeout(timeoutMs)
    const request = send(target, {
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        'content-length': Buffer.byteLength(body),
        'user-agent': 'rivulet-webhooks',
        ...headers,
      },
      // A connection of its own: a kept one was checked for another name.
      agent: false,
      signal: isTooLate,
      ...(!allowPrivate && { lookup: publicLookup(lookupAll) }),
    })
    // A response that breaks off is a response. Every event below ends in a 'close' of the request, which is the only one that settles the attempt.
    request.on('error', error => {
      if ('error' in result) result = { error: isTooLate.aborted ? `No response within ${timeoutMs} ms` : error.message }
    })
    request.on('upgrade', ({ statusCode = 0 }, socket) => {
      result = { status: statusCode }
      socket.destroy()
    })
    request.on('response', response => {
      const { statusCode = 0 } = response
      result = { status: statusCode }
      let received = 0
      response.on('data', (chunk: Buffer) => {
        received += chunk.length
        if (received > maxResponseBytes) request.destroy()
      })
      response.on('end', () => request.destroy())
      response.on('error', () => request.destroy())
    })
    request.on('close', () => resolve(result))
    request.end(body)
  })
}

/** As Node's own lookup, except that one private address among those of a name rejects the name. */
function publicLookup(resolve: Resolve): LookupFunction {
  return (hostname, options, callback) =>
    resolve(hostname, { ...options, all: true }, (error, addresses) => {
      const [first] = addresses ?? []
      if (error || !first) return callback(error ?? new Error('The name has no address'), [])
      if (addresses.some(({ address }) => isPrivateAddress(address))) return callback(new Error(privateError), [])
      return options.all ? callback(null, addresses) : callback(null, first.address, first.family)
    })
}
