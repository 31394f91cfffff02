/** The web console beside the platform: built if it is out of date, or served with hot reload in development. */
import { buildConsole, serveConsole } from '@rivulet/console/page'

export type ConsolePage = { url: string; close(): Promise<void> }

export type ConsolePageOptions = { apiUrl: string; isWatching: boolean; write: (line: string) => void }

/** Never fails: what is wrong with the console is said, and the platform runs without it. */
export async function openConsole({ apiUrl, isWatching, write }: ConsolePageOptions): Promise<ConsolePage> {
  const startedAt = performance.now()
  try {
    if (isWatching) return await serveConsole({ apiUrl, port: Number(new URL(apiUrl).port) + 1 })
    if (await buildConsole()) write(`console built in ${((performance.now() - startedAt) / 1_000).toFixed(1)} s`)
  } catch (error) {
    write(`console could not be built: ${error instanceof Error ? error.message : error}`)
  }
  return { url: apiUrl, close: async () => {} }
}
