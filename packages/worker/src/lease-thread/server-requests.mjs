// @ts-check
/**
 * Requests of a worker to the APIs that it knows: its URL may name several, separated by commas. It calls one of them, at random so that workers spread,
 * until a request fails there; then it calls the next, so a worker keeps its turns when one API is gone. The caller decides what to send again.
 */
import * as http from 'node:http'
import * as https from 'node:https'

/** @param {string} urls */
export function createServerRequests(urls) {
  const servers = urls.split(',').map(url => {
    const base = url.trim().replace(/\/+$/, '')
    const { request, Agent } = new URL(base).protocol === 'https:' ? https : http
    return { base, request, agent: new Agent({ keepAlive: true }) }
  })
  let at = Math.floor(Math.random() * servers.length)
  return { send }

  /**
   * Resolves with the response, whatever its status.
   *
   * @param {string} call
   * @param {Pick<http.RequestOptions, 'headers' | 'signal'>} options
   * @param {(request: http.ClientRequest) => void} write writes and ends the body
   * @returns {Promise<http.IncomingMessage>}
   */
  function send(call, options, write) {
    const from = at
    const { base, request, agent } = /** @type {(typeof servers)[number]} */ (servers[from])
    return new Promise((resolve, reject) => {
      const sent = request(`${base}/internal/${call}`, { method: 'POST', agent, ...options }, response => {
        if ((response.statusCode ?? 500) >= 500) leave(from)
        resolve(response)
      })
      sent.on('error', error => {
        leave(from)
        reject(error)
      })
      write(sent)
    })
  }

  /** Requests that were sent together fail together, and move on once. @param {number} from */
  function leave(from) {
    if (from === at) at = (at + 1) % servers.length
  }
}
