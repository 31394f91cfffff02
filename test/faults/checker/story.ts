/**
 * The script of the agent in the fault bench: every word is a function of the task, the turn, the attempt and its place, so the
 * checker knows every byte, and a word of another attempt shows.
 */
import { messagesOf } from '@rivulet/protocol'
import { ask, done, fail, rest, type Step, say, spawn } from '../../support/agents/scripts.ts'
import type { Viewer } from '../../support/viewers/viewer.ts'

export type Story = {
  /** The task's name in this bench: its id is not known before it is asked for. */
  label: string
  turnNumber: number
  words: number
  restMs: number
  /** The attempts before this one throw at their end. Default 1: none does. */
  succeedsAt?: number
  /** How often it asks for an approval, each time after a message. What a park has stored stays for all attempts, so then all of them say the same. */
  asks?: number
  /** How often it spawns a child and waits for it, in the same places. */
  spawns?: number
}

/** Attempts beyond this one say what it says. */
const lastAttempt = 9
const perMessage = 12

/** A task's or a turn's `params`. */
export function paramsOf(story: Story): object {
  const { succeedsAt = 1 } = story
  const attempts = Array.from({ length: lastAttempt }, (_, i) => {
    const steps = stepsOf(story, i + 1)
    return [String(i + 1), i + 1 < succeedsAt ? [...steps, fail('as told')] : steps]
  })
  return { mode: 'generator', attempts: Object.fromEntries(attempts) }
}

/** The texts of the agent's messages when it has said all of it. */
export function textsOf(story: Story, attempt: number): string[] {
  const words = Array.from({ length: story.words }, (_, i) => wordOf(story, attempt, i))
  return Array.from({ length: Math.ceil(words.length / perMessage) }, (_, m) => words.slice(m * perMessage, (m + 1) * perMessage).join(''))
}

export function inputOf({ label, turnNumber }: Pick<Story, 'label' | 'turnNumber'>): string {
  return `${label}, turn ${turnNumber}?`
}

/** Whether a viewer holds the word at this place of a first turn, of any attempt or of this one. */
export function hasHeard({ state }: Viewer, place: number, attempt?: number): boolean {
  const word = new RegExp(`/1/${attempt ?? '\\d+'}/${place}\\D`)
  return messagesOf(state()).some(({ content }) => content.type === 'text' && word.test(content.text))
}

function stepsOf(story: Story, attempt: number): Step[] {
  return Array.from({ length: story.words }, (_, i) => [
    say(Math.floor(i / perMessage), wordOf(story, attempt, i)),
    rest(story.restMs),
    ...((i + 1) % perMessage === 0 ? asksAfter(story, Math.floor(i / perMessage)) : []),
  ]).flat()
}

/** Every other question is held for a while before the turn parks. */
function asksAfter({ asks = 0, spawns = 0 }: Story, message: number): Step[] {
  if (message < spawns) return [done(message), spawn(`child ${message}`, 'echo', { input: 'hello' })]
  return message < asks ? [done(message), ask(`ask ${message}`, message % 2 === 0 ? 0 : 1_500)] : []
}

function wordOf({ label, turnNumber, asks, spawns }: Story, attempt: number, i: number): string {
  return `${label}/${turnNumber}/${asks || spawns ? 1 : Math.min(attempt, lastAttempt)}/${i}${i % 3 === 0 ? '\u{1f30a}' : ''} `
}
