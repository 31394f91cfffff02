/** A server for a caller: its URL, a promise that resolves when it is lost, and a way to stop it. */

export type Engine = {
  url: string
  /** external: the caller's URL. native: a server from PATH. embedded: one that came with the packages. */
  kind: 'external' | 'native' | 'embedded'
  /** For people, without a password: `valkey 9.1 (wasm), data in .rivulet/redis`. */
  description: string
  /** The server's process; null for an external server. */
  pid: number | null
  /** Resolves with a description when the server ends before `stop`. Never resolves for an external server. */
  lost: Promise<string>
  /** Ends the server and keeps its data. Resolves when the process is gone. Does nothing for an external server. */
  stop(): Promise<void>
}
