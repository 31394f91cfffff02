// @ts-check
/**
 * Heartbeats: every `heartbeatMs`, one that renews the leases of all held turns, then a hello. A beat that fails is retried after a fifth of that
 * time, and after ever longer pauses while no turn is held, because there is no lease to renew. A beat that hangs does not delay the next one. The first
 * of several failures in a row is reported.
 */

/** A body has at most `MAX_JSON_ITEMS` items, which is 1,000 or more, and a turn takes up to six of them. */
const turnsPerBeat = 150

/** Beats in flight. */
const maxFailedBeats = 3

/**
 * @typedef {import('./messages.ts').Held} Held
 * @param {{
 *   post: ReturnType<typeof import('./post.mjs').createPost>,
 *   options: import('./messages.ts').ThreadOptions,
 *   held: ReadonlyMap<number, Held>,
 *   tell: (message: import('./messages.ts').FromThread) => void,
 * }} deps
 */
export function startBeats({ post, options, held, tell }) {
  const { worker, hello, heartbeatMs } = options
  let fenced = 0
  let failedBeats = 0
  let failures = 0
  let isStopped = false
  /** @type {NodeJS.Timeout | undefined} */
  let again
  const timer = setInterval(() => void beat(), heartbeatMs)
  return { beat, noteFenced, stop }

  /** @param {number} count */
  function noteFenced(count) {
    fenced += count
  }

  function stop() {
    isStopped = true
    clearInterval(timer)
    clearTimeout(again)
  }

  async function beat() {
    if (isStopped || failedBeats >= maxFailedBeats) return
    failedBeats += 1
    try {
      await renew()
      if (hello) tell({ queues: /** @type {Record<string, string>} */ ((await post('hello', hello)).queues ?? {}) })
      failures = 0
    } catch (error) {
      const reason = error instanceof Error ? error.message : String(error)
      if (error instanceof Error && 'code' in error && error.code === 'forbidden') return tell({ refused: reason })
      failures += 1
      if (failures === 1) tell({ failed: reason })
      clearTimeout(again)
      const factor = held.size > 0 ? 1 : Math.min(2 ** (failures - 1), 5)
      again = setTimeout(() => void beat(), (heartbeatMs / 5) * factor)
    } finally {
      failedBeats -= 1
    }
  }

  /** Before the hello: the server takes a hello without a renewal as proof that the worker does not hold a turn. */
  async function renew() {
    const asked = Array.from(held, ([key, { holding, open = 0 }]) => ({ key, holding, open }))
    // The next beat may start before this one ends, and must not report the same count.
    const reported = fenced
    fenced = 0
    try {
      for (let at = 0; at === 0 || at < asked.length; at += turnsPerBeat) {
        const piece = asked.slice(at, at + turnsPerBeat)
        const isLast = at + turnsPerBeat >= asked.length
        await renewPiece(piece, isLast ? reported : 0)
      }
    } catch (error) {
      fenced += reported
      throw error
    }
  }

  /** @type {(piece: { key: number, holding: Held['holding'], open: number }[], reported: number) => Promise<void>} */
  async function renewPiece(piece, reported) {
    const holding = piece.filter(({ open }) => open > 0)
    const waiting = Object.fromEntries(holding.map(one => [one.holding.turnId, one.open]))
    const turns = piece.map(one => one.holding)
    const reply = await post('heartbeat', { worker, turns, fenced: reported, ...(holding.length > 0 && { waiting }) })
    const ids = new Set(/** @type {string[]} */ (reply.lost))
    const lost = piece.filter(({ holding }) => ids.has(holding.turnId)).map(({ key, holding }) => ({ key, epoch: holding.epoch }))
    if (lost.length > 0) tell({ lost })
    const woken = new Set(/** @type {string[]} */ (reply.answered ?? []))
    const answered = holding.filter(one => woken.has(one.holding.turnId)).map(({ key }) => key)
    if (answered.length > 0) tell({ answered })
  }
}
