/** POSTs of JSON, so many at a time, on connections that are kept. */
import { Agent, request } from 'node:http'

type Poster = {
  /** Resolves with the response body. */
  post<Body>(path: string, body: unknown): Promise<Body>
  close(): void
}

export function createPoster(url: string, { inFlight, headers = {} }: { inFlight: number; headers?: Record<string, string> }): Poster {
  const agent = new Agent({ keepAlive: true, maxSockets: inFlight })
  return { post, close: () => agent.destroy() }

  function post<Body>(path: string, body: unknown): Promise<Body> {
    const text = JSON.stringify(body)
    return new Promise((resolve, reject) => {
      const all = { ...headers, 'content-type': 'application/json', 'content-length': Buffer.byteLength(text) }
      const sent = request(url + path, { method: 'POST', agent, headers: all }, async response => {
        const chunks: Buffer[] = []
        for await (const chunk of response) chunks.push(chunk)
        const received = Buffer.concat(chunks).toString()
        if ((response.statusCode ?? 500) < 300) resolve(JSON.parse(received))
        else reject(new Error(`POST ${path} returned ${response.statusCode} ${received}`))
      })
      // A server closes a connection that was idle for 5 s, perhaps while this request is on its way.
      sent.on('error', error => (sent.reusedSocket ? resolve(post<Body>(path, body)) : reject(error)))
      sent.end(text)
    })
  }
}
