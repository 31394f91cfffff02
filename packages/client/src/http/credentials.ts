/**
 * The bearer token of each request: a fixed key, or a token. Streams send the next tokens, which may only read, so the client uses them for
 * reading and sends changes with the token of the token function. It calls the function again when the server rejects a token.
 *
 * Concurrent rejected requests cause one call: a request that was rejected with an older token uses the newer one.
 */
import { RivuletError } from '@rivulet/protocol'
import { unreachable } from './rejection.ts'

/** A token, or how to get one: asked before the first request, and once more when the server refuses what it gave. */
export type TokenSource = string | (() => string | Promise<string>)
/** The same for a task, whose id is the argument. */
export type TaskTokenSource = string | ((task: string) => string | Promise<string>)

/** Whether a request reads, or changes something. */
type Purpose = 'read' | 'change'

export type Credentials = {
  token(purpose: Purpose): Promise<string | null>
  /** Another token than the one that was refused, or null if the caller has no other. */
  renewed(refused: string | null, purpose: Purpose): Promise<string | null>
  /** A stream was handed the token that follows its own. */
  succeed(token: string): void
}

export function createCredentials({ key, token: source }: { key?: string | undefined; token?: TokenSource | undefined }): Credentials {
  const ask = typeof source === 'string' ? () => source : source
  let granted: Promise<string> | null = null
  /** The newest that a stream has handed out since the source was asked. */
  let streamed: string | null = null
  return { token, renewed, succeed }

  async function token(purpose: Purpose): Promise<string | null> {
    if (!ask) return key ?? null
    if (purpose === 'read' && streamed !== null) return streamed
    granted ??= askFor(ask)
    return granted
  }

  async function renewed(refused: string | null, purpose: Purpose): Promise<string | null> {
    if (!ask) return null
    const before = granted
    const isLatest = refused === streamed || (await before?.catch(() => null)) === refused
    // Where another request has asked since, its answer is the newer one.
    if (isLatest && granted === before) {
      granted = askFor(ask)
      streamed = null
    }
    return token(purpose)
  }

  /** A client with a key needs no token. */
  function succeed(fresh: string): void {
    if (ask) streamed = fresh
  }

  function askFor(ask: () => string | Promise<string>): Promise<string> {
    const asked = Promise.resolve()
      .then(ask)
      .catch((error: unknown) => {
        if (granted === asked) granted = null
        // To give up, it throws an error of the table; anything else may be the network, and is asked again.
        throw error instanceof RivuletError ? error : unreachable('Getting a token failed', error)
      })
    return asked
  }
}
