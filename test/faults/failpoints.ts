/**
 * What a failpoint does in a program of the fault bench, which is bundled with this file before everything else.
 *
 * FAILPOINTS names what is armed: `committed=kill`, `appended=throw@3`, `claimed=stall:800%0.1`, separated by commas. `@n` means the n-th time
 * (the first without it), `%p` any time, with that probability. A failpoint that stands behind an action and throws is "do it, then throw".
 * One that stalls keeps the whole process from doing anything; one that delays holds up only its own step, and other steps overtake it. A trap
 * that springs writes a line to the output of its process. JOURNAL is a folder: what passes a failpoint is noted there, as NDJSON.
 */
import { appendFileSync, writeSync } from 'node:fs'
// Types only: the module reads the handler when it is loaded, which must be after this one.
import type { Failpoint } from '@rivulet/runtime/failpoint'

type Armed = { action: string; pauseMs: number; nth: number; probability: number | null }

// A turn whose worker died runs in a process of its own, which inherits everything but the traps: it would never come to its end.
const traps = process.env.RIVULET_ISOLATED_TURN ? '' : (process.env.FAILPOINTS ?? '')
const armed = new Map(traps.split(',').filter(Boolean).map(parse))
const journal = process.env.JOURNAL ? `${process.env.JOURNAL}/${process.pid}.ndjson` : null
const passed = new Map<Failpoint, number>()

globalThis.rivuletFailpoint = reach

function reach(name: Failpoint, ...values: unknown[]): Promise<void> | undefined {
  if (journal) appendFileSync(journal, `${JSON.stringify({ at: Date.now(), pid: process.pid, point: name, values })}\n`)
  const times = (passed.get(name) ?? 0) + 1
  passed.set(name, times)
  const trap = armed.get(name)
  if (!trap || (trap.probability === null ? times !== trap.nth : Math.random() >= trap.probability)) return undefined
  writeSync(process.stderr.fd, `failpoint ${name}: ${trap.action}\n`)
  switch (trap.action) {
    case 'kill':
      process.kill(process.pid, 'SIGKILL')
      // The signal is on its way: nothing more may happen here.
      for (;;);
    case 'throw':
      throw new Error(`Failpoint ${name}`)
    case 'stall':
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, trap.pauseMs)
      return undefined
    case 'delay':
      return new Promise(resolve => setTimeout(resolve, trap.pauseMs))
  }
  return undefined
}

function parse(text: string): [Failpoint, Armed] {
  const [, name, action, pauseMs, nth, probability] =
    /^([a-z ]+)=(kill|throw|stall|delay)(?::(\d+))?(?:@(\d+))?(?:%([\d.]+))?$/.exec(text) ?? []
  if (!name || !action) throw new Error(`This arms no failpoint: ${text}`)
  return [
    name as Failpoint,
    { action, pauseMs: Number(pauseMs ?? 0), nth: Number(nth ?? 1), probability: probability ? Number(probability) : null },
  ]
}
