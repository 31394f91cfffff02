/** nchan's publisher: one POST for each event, and the next after its response. Tasks share up to 200 connections. */
import { Agent, request } from 'node:http'
import { handleRequests } from '../child.ts'
import { eventOf, type Plan, speak } from '../measure/speech.ts'

const agent = new Agent({ keepAlive: true, maxSockets: 200 })

handleRequests({
  speak: ({ plan, urls }: { plan: Plan; urls: string[] }) => Promise.all(urls.map((url, task) => publish(plan, url, task))),
  remove: (urls: string[]) => Promise.all(urls.map(url => send('DELETE', url))),
})

async function publish(plan: Plan, url: string, task: number): Promise<void> {
  for await (const { number, text } of speak(plan, task)) await send('POST', url, eventOf(url, number, text))
}

function send(method: string, url: string, body = ''): Promise<void> {
  return new Promise((resolve, reject) => {
    const headers = { 'content-length': Buffer.byteLength(body), 'content-type': 'application/json' }
    const sent = request(url, { method, agent, headers }, response => {
      response.resume().on('end', resolve)
      if ((response.statusCode ?? 500) >= 400 && method === 'POST') reject(new Error(`nchan returned ${response.statusCode}`))
    })
    sent.on('error', reject)
    sent.end(body)
  })
}
