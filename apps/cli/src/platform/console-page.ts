/** The web console of a checkout: built if it is out of date, or served with hot reload in development. The published package has it built already. */
import { buildConsole, serveConsole } from '@rivulet/console/page'
import { isCheckout } from './programs.ts'

export type ConsolePage = { url: string; close(): Promise<void> }

export type ConsolePageOptions = { apiUrl: string; isWatching: boolean; write: (line: string) => void }

/** Never fails: what is wrong with the console is said, and the platform runs without it. */
export async function openConsole({ apiUrl, isWatching, write }: ConsolePageOptions): Promise<ConsolePage> {
  const startedAt = performance.now()
  try {
    if (!isCheckout) return served()
    if (isWatching) return await serveConsole({ apiUrl, port: Number(new URL(apiUrl).port) + 1 })
    if (await buildConsole()) write(`console built in ${((performance.now() - startedAt) / 1_000).toFixed(1)} s`)
  } catch (error) {
    write(`console could not be built: ${error instanceof Error ? error.message : error}`)
  }
  return served()

  /** By the API itself. */
  function served(): ConsolePage {
    return { url: apiUrl, close: async () => {} }
  }
}
