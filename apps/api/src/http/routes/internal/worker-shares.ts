/**
 * The share of each tenant's workers in this process, so that the workers of one tenant do not hold up those of others: two calls, four heartbeats and
 * some polls are under way at a time. Others wait in line before the API reads their body.
 *
 * Keys for all tenants belong to the installation and have no share. Bytes of files have places of their own.
 */
import type { ServerResponse } from 'node:http'
import { RivuletError } from '@rivulet/protocol'
import type { FastifyInstance } from 'fastify'
import { isInstallations } from '../../../access/principal.ts'

const atOnce = { call: 2, beat: 4, poll: 500, watch: 500 } as const
/** A `watch` is a heartbeat that waits for news: polls of turns must not hold it up. */
type Kind = keyof typeof atOnce

/** Calls of one kind that may wait. A worker has up to 64 under way, and gives up after 10 s. */
const maxWaiting = 1_000

/** By the last part of a path. Every other call is a `call`, and null has no share. */
type CallKinds = Readonly<Record<string, Kind | null>>

/** Returns what makes the routes of a scope take part. */
export function createTenantShares(): (scope: FastifyInstance, kinds: CallKinds) => void {
  const lines = new Map<string, Line>()
  return (scope, kinds) => {
    scope.addHook('onRequest', async ({ principal, routeOptions: { url = '' } }, { raw }) => {
      const call = url.slice(url.lastIndexOf('/') + 1)
      const kind = call in kinds ? kinds[call] : 'call'
      if (!kind || isInstallations(principal)) return
      const name = `${kind} ${principal.tenant}`
      const line = lines.get(name) ?? new Line(atOnce[kind], () => lines.delete(name))
      lines.set(name, line)
      await line.enter(raw)
    })
  }
}

/** A place is held until the response is written or its connection is closed. */
class Line {
  readonly #places: number
  readonly #onEmpty: () => void
  readonly #waiting = new Set<() => void>()
  #used = 0

  constructor(places: number, onEmpty: () => void) {
    this.#places = places
    this.#onEmpty = onEmpty
  }

  async enter(response: ServerResponse): Promise<void> {
    if (this.#used >= this.#places) await this.#untilPlace(response)
    else this.#used += 1
    if (response.destroyed) this.#leave()
    else response.once('close', () => this.#leave())
  }

  /** The call that leaves hands its place over. */
  #untilPlace(response: ServerResponse): Promise<void> {
    if (this.#waiting.size >= maxWaiting)
      throw new RivuletError('rate_limited', `The workers of a tenant may have at most ${maxWaiting} calls waiting in one API process`)
    return new Promise((resolve, reject) => {
      const take = () => {
        response.off('close', giveUp)
        resolve()
      }
      const giveUp = () => {
        this.#waiting.delete(take)
        reject(new RivuletError('request_timeout', 'The worker closed the connection before its call began'))
      }
      response.once('close', giveUp)
      this.#waiting.add(take)
    })
  }

  #leave(): void {
    const [next] = this.#waiting
    if (next) {
      this.#waiting.delete(next)
      next()
      return
    }
    this.#used -= 1
    if (this.#used === 0) this.#onEmpty()
  }
}
