/** The web console: in a checkout with `dev` it is served with hot reload; otherwise the API serves the built one. */
import { serveConsole } from '@rivulet/console/page'
import { isCheckout } from './programs.ts'

export type ConsolePage = { url: string; close(): Promise<void> }

type ConsolePageOptions = { apiUrl: string; isWatching: boolean; write: (line: string) => void }

/** Never fails: if the console cannot be served, a line says why, and the platform runs without it. */
export async function openConsole({ apiUrl, isWatching, write }: ConsolePageOptions): Promise<ConsolePage> {
  const servedByApi = { url: apiUrl, close: async () => {} }
  if (!isCheckout || !isWatching) return servedByApi
  try {
    return await serveConsole({ apiUrl, port: Number(new URL(apiUrl).port) + 1 })
  } catch (error) {
    write(`console could not be served: ${error instanceof Error ? error.message : error}`)
    return servedByApi
  }
}
