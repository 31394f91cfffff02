/**
 * The durable loop over one turn's writer and steps: an agent with five rounds of tools is killed at every event that it writes and around every
 * step that it stores, and the next attempt goes on. Calls are counted at the model's side and at the tools' side.
 */
import { call, defineTool, type Model, runAgent, say, scriptedModel, think, user } from '@rivulet/agent'
import type { Claim } from '@rivulet/contract/internal'
import { defaultLimits, type Event, type Message } from '@rivulet/protocol'
import { newTraceparent, plainSpan } from '@rivulet/runtime/trace'
import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import { noChildren, noWaits } from '../../test/no-waits.ts'
import { createTurnWriter } from '../writer/turn-writer.ts'
import { createSteps } from './steps/steps.ts'
import { createTurn, type Turn } from './turn.ts'
import { createAsk } from './waits/ask.ts'

const rounds = 5

describe('a worker that is killed between any two events', () => {
  test('repeats no response that was complete and no tool that had a result, and ends with the same messages', async () => {
    const whole = createWorld()
    await whole.attempt()
    const { points } = whole
    const expected = whole.messages()
    expect(whole.calls()).toMatchObject({ 'model 1': 1, 'model 6': 1, 'look 1': 1, 'note 5': 1, 'inside 3': 1 })
    expect(points()).toBeGreaterThan(60)

    for (let point = 1; point <= points(); point += 1) {
      const world = createWorld()
      await world.attempt(point)
      const [seen, kept, before] = [world.seen(), world.kept(), world.calls()]
      await world.attempt()
      const after = world.calls()
      for (const name of [...seen, ...kept]) expect([point, name, after[name]]).toEqual([point, name, before[name]])
      const repeated = Object.keys(after).filter(name => (after[name] ?? 0) > 1)
      // Only what was under way: one response, or the tools of one round.
      expect([point, new Set(repeated.map(name => name.replace(/^\D+/, ''))).size <= 1]).toEqual([point, true])
      expect(world.messages().map(comparable)).toEqual(expected.map(comparable))
    }
  })

  test('also when it is killed in every attempt', async () => {
    const world = createWorld()
    let attempts = 0
    for (let point = 7; world.messages().length === 0; point += 5, attempts += 1) {
      const [kept, before] = [[...world.seen(), ...world.kept()], world.calls()]
      await world.attempt(point)
      for (const name of kept) expect([attempts, name, world.calls()[name]]).toEqual([attempts, name, before[name]])
    }
    expect(attempts).toBeGreaterThan(5)
  })
})

test('a response or a result that is not kept ends nothing that viewers see', async () => {
  const world = createWorld()
  await world.attempt()
  const log = world.log()
  for (const name of world.kept()) {
    const stored = log.indexOf(`kept ${name}`)
    const seen = log.indexOf(`seen ${name}`)
    if (seen >= 0) expect([name, stored < seen]).toEqual([name, true])
  }
  expect(log.filter(entry => entry.startsWith('seen'))).toHaveLength(rounds + 1 + rounds * 2)
})

/** Everything that outlives an attempt: the stored steps, and the calls. */
function createWorld() {
  const memory: Claim['steps'] = []
  const calls: Record<string, number> = {}
  let log: string[] = []
  let points = 0
  let finished: Message[] = []
  return {
    attempt,
    calls: () => ({ ...calls }),
    points: () => points,
    log: () => log,
    messages: () => finished,
    /** What the events that were written show the end of. */
    seen: () => log.flatMap(entry => /^seen (.+)$/.exec(entry)?.[1] ?? []),
    kept: () => memory.map(({ name }) => nameOfCall(name)),
  }

  /** Dies at the given point: later writes never happen, and pending ones never return. */
  async function attempt(killedAt = Number.POSITIVE_INFINITY): Promise<void> {
    let die = () => {}
    const death = new Promise<void>(resolve => (die = resolve))
    let isDead = false
    let passed = 0
    log = []
    const never = new Promise<never>(() => {})
    const pass = async () => {
      if (isDead) return never
      passed += 1
      points = Math.max(points, passed)
      if (passed < killedAt) return
      isDead = true
      die()
      return never
    }
    const count = (name: string) => {
      if (!isDead) calls[name] = (calls[name] ?? 0) + 1
    }
    const ends = createEnds()
    const writer = createTurnWriter({
      turn: { task, turn: 1, attempt: 1, firstIndex: 0 },
      epoch: 1,
      appender: {
        append: async ({ entries }) => {
          for (const entry of entries) {
            await pass()
            const end = ends(JSON.parse(entry.json))
            if (end) log.push(`seen ${end}`)
          }
          return 'ok'
        },
      },
      askReopen: async () => null,
      onFenced: () => {},
      onLost: () => {},
    })
    const remember = async (name: string, text: string) => {
      await pass()
      memory.push({ name, memory: text })
      log.push(`kept ${nameOfCall(name)}`)
      await pass()
    }
    const steps = createSteps({ writer, remembered: [...memory], remember, sendUsage: () => {}, maxBytes: defaultLimits.stepsBytes })
    const { turn } = createTurn({
      claim: { task: { id: task, params: null }, turn: { number: 1 }, attempt: 1 } as Claim,
      ...steps,
      checkBudget: () => {},
      ask: createAsk(noWaits, steps.within),
      spawn: noChildren,
      signal: new AbortController().signal,
      log: silent,
      span: plainSpan(newTraceparent()),
      takeInputs: async () => [],
      loadHistory: async () => [],
      useStore: async () => ({ stored: null }),
      files: { read: () => Promise.reject(new Error('not here')), store: () => Promise.reject(new Error('not here')) },
    })
    const handled = handle(turn, count, () => (isDead ? never : Promise.resolve())).then(() => writer.drain())
    await Promise.race([handled, death])
    if (!isDead) finished = writer.messages()
  }
}

async function handle(turn: Turn, count: (name: string) => void, alive: () => Promise<void>): Promise<void> {
  const look = defineTool({
    name: 'look',
    description: 'Looks at a thing',
    input: z.object({ round: z.number() }),
    run: async ({ round }, { progress }) => {
      await alive()
      count(`look ${round}`)
      progress('Looking … ')
      await alive()
      return { round, saw: `thing ${round}` }
    },
  })
  const note = defineTool({
    name: 'note',
    description: 'Takes a note, or fails',
    input: z.object({ round: z.number() }),
    run: async ({ round }) => {
      await alive()
      count(`note ${round}`)
      await turn.step(`note ${round}`, async () => count(`inside ${round}`))
      await turn.send(`Note ${round}`)
      if (round === 2) throw new Error('No ink')
      return round
    },
  })
  const run = runAgent({ turn, model: countedModel(count, alive), tools: [look, note], messages: [user('go')] })
  const { text } = await turn.autoSend(run)
  await turn.send(`Said: ${text.length}`)
}

function countedModel(count: (name: string) => void, alive: () => Promise<void>): Model {
  const model = scriptedModel(
    ({ messages }) => {
      const round = messages.filter(({ content }) => content.type === 'tool_request' && content.name === 'look').length + 1
      const usage = { inputTokens: round, outputTokens: 1 }
      if (round > rounds) return { parts: [say('All done.')], usage }
      return { parts: [think(`Round ${round}`), say(`Looking at ${round}.`), call('look', { round }), call('note', { round })], usage }
    },
    { chunks: 'words' },
  )
  return {
    name: model.name,
    stream(request, options) {
      const round = request.messages.filter(({ content }) => content.type === 'tool_request' && content.name === 'look').length + 1
      void alive().then(() => count(`model ${round}`))
      return model.stream(request, options)
    },
  }
}

/** Which response or result an event ends, as the counts call it. */
function createEnds(): (event: Event) => string | null {
  const types = new Map<number, string>()
  let [responses, calls] = [0, 0]
  return event => {
    if (event.type === 'message.started')
      types.set(event.index, event.content.type === 'tool_request' ? event.content.name : event.content.type)
    if (event.type === 'message.finished' && event.stopReason) return `model ${++responses}`
    if (event.type === 'message.replaced' && event.content.type === 'tool_response')
      return `${event.content.name} ${Math.floor(calls++ / 2) + 1}`
    return null
  }
}

function nameOfCall(step: string): string {
  const [, kind, round, position] = /^run 1\/(model|tool) (\d+)(?:\.(\d+))?$/.exec(step) ?? []
  if (!kind) return step.replace('note', 'inside')
  return kind === 'model' ? `model ${round}` : `${position === '1' ? 'look' : 'note'} ${round}`
}

/** Without times and ids, which are new in each attempt. */
function comparable({ createdAt: _, finishedAt: __, response, content, ...message }: Message): object {
  return { ...message, model: response?.model, content: { ...content, callId: undefined } }
}

const task = '01890000-0000-7000-8000-000000000000'
const silent: Turn['log'] = { debug() {}, info() {}, warn() {}, error() {}, child: () => silent }
