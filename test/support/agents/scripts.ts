/** Steps for the `scripted` agent, and numbers that are random but the same in every run. */
import type { Content, Delta, Json, JsonObject } from '@rivulet/protocol'

export type Step = Record<string, unknown>

export const modes = ['generator', 'autoSend', 'manual'] as const
export type Mode = (typeof modes)[number]

export const start = (index: number, content: Content | object): Step => ({ start: { index, content } })
export const say = (index: number, text: string): Step => ({ delta: { index, delta: { type: 'text', text } } })
export const extend = (index: number, delta: Delta | object): Step => ({ delta: { index, delta } })
export const full = (index: number, content: Content | object): Step => ({ full: { index, content } })
export const done = (index: number): Step => ({ done: { index } })
export const set = (value: Json): Step => ({ state: { value } })
export const patch = (patch: JsonObject): Step => ({ state: { patch } })
export const spawn = (name: string, agent: string, child: object = {}): Step => ({ spawn: { name, agent, ...child } })
export const rest = (ms: number): Step => ({ sleep: ms })
export const ask = (name: string, holdMs: number): Step => ({ ask: { name, holdMs } })
export const repeat = (times: number, ...steps: Step[]): Step => ({ repeat: { times, steps } })
export const fail = (message: string): Step => ({ throw: message })

/** A task of the `scripted` agent that plays these steps. */
export function scripted(steps: Step[], task: object = {}, mode: Mode = 'generator'): object {
  return { agent: 'scripted', params: { mode, steps }, ...task }
}

/** Between 0 and 1, the same sequence for the same seed (mulberry32). */
export function seededRandom(seed: number): () => number {
  let state = seed
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296
  }
}
