/**
 * The bearer of each request: a key that stays, or a token, which is succeeded by those that its stream hands out, and asked for anew when
 * the server no longer takes it.
 *
 * Requests that are refused together renew it once: whoever was refused with an older token just uses the newer one.
 */
import { RivuletError } from '@rivulet/protocol'
import { unreachable } from './answer.ts'

/** A token, or how to get one: asked before the first request, and once more when the server refuses what it gave. */
export type TokenSource = string | (() => string | Promise<string>)
/** The same for a task, whose id it is told. */
export type TaskTokenSource = string | ((task: string) => string | Promise<string>)

export type Credentials = {
  token(): Promise<string | null>
  /** Another token than the one that was refused, or null when there is none to be had. */
  renewed(refused: string | null): Promise<string | null>
  /** A stream was handed the token that follows the one in use. */
  succeed(token: string): void
}

export function createCredentials({ key, token: source }: { key?: string | undefined; token?: TokenSource | undefined }): Credentials {
  const ask = typeof source === 'string' ? () => source : source
  let known: Promise<string> | null = null
  return { token, renewed, succeed }

  async function token(): Promise<string | null> {
    if (!ask) return key ?? null
    known ??= askFor(ask)
    return known
  }

  async function renewed(refused: string | null): Promise<string | null> {
    if (!ask) return null
    const before = known
    // Nobody has asked again since this one was handed out.
    if ((await before?.catch(() => null)) === refused && known === before) known = askFor(ask)
    return token()
  }

  /** Who has a key of its own needs no token. */
  function succeed(fresh: string): void {
    if (ask) known = Promise.resolve(fresh)
  }

  function askFor(ask: () => string | Promise<string>): Promise<string> {
    const asked = Promise.resolve()
      .then(ask)
      .catch((error: unknown) => {
        if (known === asked) known = null
        // To give up, it throws an error of the table; anything else may be the network, and is asked again.
        throw error instanceof RivuletError ? error : unreachable('No token could be had', error)
      })
    return asked
  }
}
