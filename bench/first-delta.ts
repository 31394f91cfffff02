/** A task that is created and watched with one request: how long until its first delta is here. */
import { request } from 'node:http'
import { authorization, type Platform } from './platform.ts'

export function firstDeltaMs({ api }: Pick<Platform, 'api'>): Promise<number> {
  const plan = { tasks: 1, deltas: 1, perSecond: null }
  const body = JSON.stringify({ agent: 'speaker', params: { task: 0, plan } })
  const headers = { ...authorization, accept: 'text/event-stream', 'content-type': 'application/json', 'content-length': body.length }
  return new Promise((resolve, reject) => {
    const began = performance.now()
    let heardMs: number | null = null
    const sent = request(`${api.url}/v1/tasks`, { method: 'POST', agent: false, headers }, response => {
      response.setEncoding('utf8').on('data', (text: string) => {
        if (text.includes('#')) heardMs ??= performance.now() - began
      })
      // To its end, so that nothing of it is left when the next one begins.
      response.on('end', () => (heardMs === null ? reject(new Error('A task ended without a word')) : resolve(heardMs)))
    })
    sent.on('error', reject)
    sent.end(body)
  })
}
