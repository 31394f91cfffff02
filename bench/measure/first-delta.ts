/** The time from the request that creates and watches a task to its first delta. */
import { request } from 'node:http'
import { authorization, type Platform } from '../platform.ts'

export function firstDeltaMs({ api }: Pick<Platform, 'api'>): Promise<number> {
  const plan = { tasks: 1, deltas: 1, perSecond: null }
  const body = JSON.stringify({ agent: 'speaker', params: { task: 0, plan } })
  const headers = { ...authorization, accept: 'text/event-stream', 'content-type': 'application/json', 'content-length': body.length }
  return new Promise((resolve, reject) => {
    const began = performance.now()
    let receivedMs: number | null = null
    const sent = request(`${api.url}/v1/tasks`, { method: 'POST', agent: false, headers }, response => {
      response.setEncoding('utf8').on('data', (text: string) => {
        if (text.includes('#')) receivedMs ??= performance.now() - began
      })
      // Read the stream to its end, so that the task is over when the next one starts.
      response.on('end', () => (receivedMs === null ? reject(new Error('A task ended without a delta')) : resolve(receivedMs)))
    })
    sent.on('error', reject)
    sent.end(body)
  })
}
