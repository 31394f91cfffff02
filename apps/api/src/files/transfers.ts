/** Uploads and downloads that are under way: how many there may be, in this process and of one caller, and their end when the process stops. */
import { RivuletError } from '@rivulet/protocol'

export type Transfer = {
  /** Fires when the process has waited long enough for this transfer. */
  signal: AbortSignal
  over(): void
}

export type Transfers = ReturnType<typeof createTransfers>

/** @param max at once; of one caller, a quarter of them */
export function createTransfers(max: number, onCount: (count: number) => void) {
  const stopping = new AbortController()
  const callers = new Map<string, number>()
  let count = 0
  return { begin, close }

  function begin(caller: string): Transfer {
    const own = callers.get(caller) ?? 0
    if (own >= Math.max(1, max / 4) || count >= max) {
      const whose = count >= max ? 'This process' : 'A caller'
      throw new RivuletError(
        'overloaded',
        `${whose} may have at most ${count >= max ? max : own} uploads and downloads at once (MAX_FILE_TRANSFERS)`,
      )
    }
    callers.set(caller, own + 1)
    onCount(++count)
    let isOver = false
    return { signal: stopping.signal, over }

    function over(): void {
      if (isOver) return
      isOver = true
      const left = (callers.get(caller) ?? 1) - 1
      if (left > 0) callers.set(caller, left)
      else callers.delete(caller)
      onCount(--count)
    }
  }

  /** Those that are under way get this long. */
  function close(graceMs: number): void {
    setTimeout(() => stopping.abort(), graceMs).unref()
  }
}
