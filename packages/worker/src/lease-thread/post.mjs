// @ts-check
/** Calls of the lease thread to the server, over its own connections, so that none waits behind the calls of turns. */
import { json } from 'node:stream/consumers'
import { createServerRequests } from './server-requests.mjs'

const timeoutMs = 10_000

/**
 * @typedef {Record<string, unknown> & { error?: { code?: string, message?: string } }} Reply
 * @param {{ url: string, key: string | undefined }} server
 * @returns {(call: string, body: object) => Promise<Reply>} Throws unless the status is 200.
 */
export function createPost({ url, key }) {
  const requests = createServerRequests(url)
  const headers = { 'content-type': 'application/json', ...(key && { authorization: `Bearer ${key}` }) }

  return async (call, body) => {
    const options = { headers, signal: AbortSignal.timeout(timeoutMs) }
    const response = await requests.send(call, options, request => request.end(JSON.stringify(body)))
    const reply = /** @type {Reply | null} */ (await json(response).catch(() => null))
    if (response.statusCode === 200 && reply) return reply
    const { code, message = `${call}: the server returned ${response.statusCode}` } = reply?.error ?? {}
    throw Object.assign(new Error(message), { code })
  }
}
