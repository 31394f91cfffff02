// @ts-check
/** Calls of the lease thread to the server, over its own connections, so that none waits behind the calls of turns. */
import * as http from 'node:http'
import * as https from 'node:https'
import { json } from 'node:stream/consumers'

const timeoutMs = 10_000

/**
 * @typedef {Record<string, unknown> & { error?: { code?: string, message?: string } }} Reply
 * @param {{ url: string, key: string | undefined }} server
 * @returns {(call: string, body: object) => Promise<Reply>} Throws unless the status is 200.
 */
export function createPost({ url, key }) {
  const base = url.replace(/\/$/, '')
  const { request, Agent } = new URL(url).protocol === 'https:' ? https : http
  const agent = new Agent({ keepAlive: true })
  const headers = { 'content-type': 'application/json', ...(key && { authorization: `Bearer ${key}` }) }

  return async (call, body) => {
    const response = await send(`${base}/internal/${call}`, JSON.stringify(body))
    const reply = /** @type {Reply | null} */ (await json(response).catch(() => null))
    if (response.statusCode === 200 && reply) return reply
    const { code, message = `${call}: the server returned ${response.statusCode}` } = reply?.error ?? {}
    throw Object.assign(new Error(message), { code })
  }

  /** @type {(to: string, body: string) => Promise<http.IncomingMessage>} */
  function send(to, body) {
    return new Promise((resolve, reject) => {
      const sent = request(to, { method: 'POST', agent, headers, signal: AbortSignal.timeout(timeoutMs) }, resolve)
      sent.on('error', reject)
      sent.end(body)
    })
  }
}
