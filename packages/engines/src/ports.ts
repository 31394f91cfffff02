/** Finds free ports on 127.0.0.1. */
import { createServer } from 'node:net'

/**
 * Starts a server on the wanted port, or on any free one when that is 0.
 * Another program may take the free port before the server does; then the next one is tried.
 */
export async function startOnPort<T>(wanted: number, start: (port: number) => Promise<T>): Promise<T> {
  if (wanted !== 0) {
    await bind(wanted)
    return await start(wanted)
  }
  for (let attempt = 1; ; attempt++) {
    const port = await bind(0)
    try {
      return await start(port)
    } catch (error) {
      if (attempt === 5 || (await isFree(port))) throw error
    }
  }
}

export function portError(port: number, error: NodeJS.ErrnoException): Error {
  if (error.code === 'EADDRINUSE') return new Error(`Port ${port} on 127.0.0.1 is taken by another program`, { cause: error })
  return new Error(`Cannot listen on 127.0.0.1:${port} (${error.message})`, { cause: error })
}

function bind(wanted: number): Promise<number> {
  return new Promise((resolve, reject) => {
    const server = createServer()
    server.once('error', error => reject(portError(wanted, error)))
    server.listen(wanted, '127.0.0.1', () => {
      const address = server.address()
      server.close(() => resolve(typeof address === 'object' && address ? address.port : wanted))
    })
  })
}

async function isFree(port: number): Promise<boolean> {
  return await bind(port).then(
    () => true,
    () => false,
  )
}
