/** Checks which program uses the port of a platform. */
import { once } from 'node:events'
import { createServer } from 'node:net'
import { createClient } from '@rivulet/client'
import { listeningUrl } from './listening-url.ts'

/** Null if the port is free. Rejects if the address cannot be listened on. */
export async function portHolder(host: string, port: number): Promise<'Rivulet' | 'another program' | null> {
  const server = createServer()
  try {
    server.listen(port, host)
    await once(server, 'listening')
    return null
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    if (code !== 'EADDRINUSE') throw new Error(`${host}:${port} cannot be listened on (${code})`)
    const isOurs = await createClient({ url: listeningUrl(host, port), maxRetries: 0, timeoutMs: 3_000 })
      .health()
      .then(
        () => true,
        () => false,
      )
    return isOurs ? 'Rivulet' : 'another program'
  } finally {
    server.close()
  }
}

/** Before anything is started that would have to be stopped again. */
export async function requireFreePort(host: string, port: number): Promise<void> {
  const holder = await portHolder(host, port)
  if (holder) throw portTaken(host, port, holder)
}

export function portTaken(host: string, port: number, holder: string): Error {
  return new Error(`${host}:${port} is taken by ${holder}: set PORT to a free one`)
}
