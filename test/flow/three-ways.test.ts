/**
 * The same deltas yielded, auto-sent and written by hand come to the same log and the same rows, whatever they are: random turns go through
 * the real log in each way. A failure names the seed and the path that repeat it.
 */
import {
  type Content,
  contentTypeOf,
  type Delta,
  type Event,
  emptyContent,
  type JsonObject,
  type Message,
  media,
  mergeDeltas,
  reasoning,
} from '@rivulet/protocol'
import {
  custom,
  data,
  defineAgent,
  delta,
  done,
  full,
  type MessageHandle,
  start,
  type Turn,
  text,
  toolRequest,
  toolResponse,
  type Update,
} from '@rivulet/worker'
import fc from 'fast-check'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { faultsOf } from '../support/judge/task-laws.ts'
import { startOwnWorker } from '../support/platform/own-worker.ts'
import { type Platform, startPlatform } from '../support/platform/platform.ts'
import { seedsUpTo } from '../support/seeds.ts'

let platform: Platform
/** What each task says, by the number in its parameters. */
const plans: Update[][] = []

const ways = [
  defineAgent('yields', async function* (turn) {
    yield* planOf(turn)
  }),
  defineAgent('auto-sends', async turn => {
    await turn.autoSend(planOf(turn))
  }),
  defineAgent('by-hand', turn => writeByHand(turn, planOf(turn))),
]

beforeAll(async () => {
  platform = await startPlatform({ workers: 0 })
})
afterAll(() => platform.close())

test.each(seedsUpTo(3))(
  'the same deltas come to the same log and the same rows in each way (seed %i)',
  { timeout: 600_000 },
  async seed => {
    await startOwnWorker(platform, ways)
    // Several at once: most of the time that a turn takes is spent on waiting.
    const together = fc.array(turnPlans, { minLength: 1, maxLength: 4, size: 'max' })
    const property = fc.asyncProperty(together, async several => {
      await Promise.all(several.map(expectTheSame))
    })
    await fc.assert(property, { seed, numRuns: 5 })
  },
)

test('the plans hold what is to be compared', () => {
  const updates = fc.sample(turnPlans, { seed: 1, numRuns: 100 }).flat()
  const kinds = new Set(updates.map(update => (update.type === 'delta' ? update.delta.type : update.type)))
  const bases = new Set(updates.flatMap(update => (update.type === 'start' || update.type === 'full' ? [update.content.type] : [])))
  expect([...kinds].sort()).toEqual([
    ...['custom', 'data', 'data_json', 'done', 'full', 'media', 'metadata', 'reasoning_content', 'reasoning_summary'],
    ...['start', 'text', 'tool_request', 'tool_response'],
  ])
  expect([...bases].sort()).toEqual(['data', 'media', 'reasoning', 'text', 'tool_request', 'tool_response'])
  expect(updates.some(update => update.type === 'delta' && update.delta.type === 'text' && !update.delta.text.isWellFormed())).toBe(true)
  expect(updates.some((update, i) => 'index' in update && (updates[i - 1]?.index ?? 0) > (update.index ?? 0) && update.index !== 0)).toBe(
    true,
  )
})

async function expectTheSame(plan: Update[]): Promise<void> {
  const params = { plan: plans.push(plan) - 1 }
  const [yielded, sent, written] = await Promise.all(ways.map(({ name }) => play(name, params)))
  expect(yielded?.faults).toEqual([])
  expect(sent).toEqual(yielded)
  expect(written).toEqual(yielded)
}

/** A task that does this, as it can be compared with another. */
async function play(agent: string, params: JsonObject) {
  const { task, turns, messages } = await platform.client.finishedTask({ agent, params, maxAttempts: 1 })
  const [turn] = turns
  const faults = await faultsOf(platform, task.id)
  return {
    faults: faults.map(fault => fault.replaceAll(task.id, 'the task')),
    turn: { status: turn?.status, stopReason: turn?.stopReason, usage: turn?.usage, error: turn?.error },
    rows: messages.map(({ task: _, createdAt: __, finishedAt: ___, ...row }: Message) => withoutId(row)),
    log: canonical((await platform.log(task.id)).map(({ event }) => event)),
  }
}

/** Without what differs between two tasks, and with neighbouring deltas merged as they may be on the way. */
function canonical(events: readonly Event[]): object[] {
  const merged: Event[] = []
  for (const event of events) {
    const last = merged.at(-1)
    const isNext = event.type === 'message.delta' && last?.type === 'message.delta' && event.index === last.index
    const both = isNext && mergeDeltas(last.delta, event.delta)
    if (both) merged[merged.length - 1] = { ...last, delta: both }
    else merged.push(event)
  }
  return merged.map(({ task: _, at: __, ...event }) => withoutId(event))
}

/** The worker gives each response an id of its own. */
function withoutId<T extends object>(said: T): T {
  return 'response' in said ? { ...said, response: { ...(said.response as object), id: '' } } : said
}

function planOf({ params }: Turn): Update[] {
  const plan = plans[(params as { plan: number }).plan]
  if (!plan) throw new Error('There is no such plan')
  return plan
}

/** What the stream of updates does, with the calls that a person would choose. */
async function writeByHand(turn: Turn, updates: readonly Update[]): Promise<void> {
  const handles: MessageHandle[] = []
  for (const update of updates) {
    if (update.type === 'custom') await turn.custom(update.name, update.data)
    else if (update.type === 'start') handles.push(turn.message(update.content, update.metadata && { metadata: update.metadata }))
    else if (update.type === 'done') await opened(update.index).finish(withoutPlace(update))
    else if (update.type === 'delta') await extend(update.index, update.delta)
    else if (handles[update.index]) await opened(update.index).replace(update.content, update.metadata)
    else handles.push(await turn.send(update.content, update.metadata))
  }

  /** A handler that writes by hand opens no message for an empty delta. */
  async function extend(index: number, said: Delta): Promise<void> {
    if (!handles[index] && isEmpty(said)) return
    handles[index] ??= turn.message(emptyContent(contentTypeOf(said.type)))
    await append(opened(index), said)
  }

  function opened(index: number): MessageHandle {
    const handle = handles[index]
    if (!handle) throw new Error(`The plan forgot to open ${index}`)
    return handle
  }
}

function append(handle: MessageHandle, addition: Delta): Promise<void> {
  if (addition.type === 'text') return handle.append(addition.text)
  if (addition.type === 'data') return handle.setData(addition.value)
  return addition.type === 'metadata' ? handle.setMetadata(addition.metadata) : handle.append(addition)
}

function withoutPlace({ type: _, index: __, ...how }: Extract<Update, { type: 'done' }>) {
  return how
}

const turnPlans: fc.Arbitrary<Update[]> = createPlans()

/** Turns of up to four messages that speak in turns, each of one kind: started or not, extended, and closed, replaced or left open. */
function createPlans(): fc.Arbitrary<Update[]> {
  // Units, so that text is cut within characters; some halves never meet the other.
  const units = ['a', ' ', 'é', '漢', '\ud83d', '\ude00', '"', '\n', '\0']
  const chunk = fc.array(fc.constantFrom(...units, '\ud83d\ude00'), { maxLength: 5 }).map(list => list.join(''))
  const json = fc.constantFrom(null, true, -1.5, '漢 "', [1, [2]], { a: { b: [] }, é: '😀' })
  const metadata: fc.Arbitrary<JsonObject> = fc.constantFrom({}, { a: 1 }, { source: ['x', null], é: { deep: true } })
  const bytes = fc.constantFrom('', 'AA==', 'AQI=', 'AwQF')

  const describing: fc.Arbitrary<Delta> = metadata.map(value => ({ type: 'metadata', metadata: value }))
  const kinds = [
    kind(fc.constantFrom(text(), text('# ', 'markdown'), text('let x', 'code')), mostly(chunk.map(said => ({ type: 'text', text: said })))),
    kind(
      fc.constantFrom(reasoning(), reasoning(['so'], ['', 'hm'])),
      mostly(
        fc
          .tuple(fc.constantFrom('reasoning_summary' as const, 'reasoning_content' as const), fc.nat(2), chunk)
          .map(([type, index, said]) => ({ type, index, text: said })),
      ),
    ),
    kind(
      fc.constantFrom(data(), data({ base: [1] })),
      fc.oneof(jsonPieces('data_json'), mostly(json.map(value => ({ type: 'data', value })))),
    ),
    kind(fc.constantFrom(toolRequest('c1', 'add'), toolRequest('c2', 'add', { a: 1 })), jsonPieces('tool_request')),
    kind(
      fc.constantFrom(toolResponse('c1', 'add'), toolResponse('c1', 'add', 'part ')),
      fc.oneof(
        mostly(chunk.map(said => ({ type: 'tool_response', text: said }))),
        fc.array(
          json.map((value): Delta => ({ type: 'data', value })),
          { maxLength: 3 },
        ),
      ),
    ),
    kind(fc.constantFrom(media('image/png'), media('image/png', 'AA==')), mostly(bytes.map(said => ({ type: 'media', bytes: said })))),
  ]
  return fc.tuple(fc.array(fc.oneof(...kinds), { minLength: 1, maxLength: 4 }), fc.array(fc.nat(11), { maxLength: 40 })).map(interleave)

  function kind(bases: fc.Arbitrary<Content>, deltas: fc.Arbitrary<Delta[]>): fc.Arbitrary<Update[]> {
    const opening = bases.chain(base => metadata.map(about => [start(0, base, about)]))
    const closing = fc.oneof(
      fc.constant([]),
      fc.constantFrom(
        [done(0)],
        [done(0, { stopReason: 'length', usage: { outputTokens: 3 } })],
        [done(0, { status: 'failed', error: { code: 'x', message: 'y' } })],
      ),
      bases.chain(whole => metadata.map(about => [full(0, whole, about)])),
    )
    const notices = fc.constantFrom([], [], [custom('tick', { n: 1 })])
    // A message of which nothing is said would leave a hole: then it is at least replaced.
    const whole = bases.map(content => [full(0, content)])
    return fc.tuple(fc.oneof(opening, fc.constant([])), notices, deltas, closing, whole).map(([opened, told, said, closed, last]) => {
      const heard = said.filter(each => !isEmpty(each))
      const isThere = opened.length + heard.length > 0 || closed[0]?.type === 'full'
      return [...opened, ...told, ...said.map(each => delta(0, each)), ...(isThere ? closed : last)]
    })
  }

  function mostly(deltas: fc.Arbitrary<Delta>): fc.Arbitrary<Delta[]> {
    return fc.array(fc.oneof({ weight: 6, arbitrary: deltas }, { weight: 1, arbitrary: describing }), { maxLength: 6 })
  }

  /** JSON text cut anywhere, now and then with its end missing. */
  function jsonPieces(type: 'data_json' | 'tool_request'): fc.Arbitrary<Delta[]> {
    return fc.tuple(json, fc.nat(9), fc.nat(9), fc.constantFrom(0, 0, 0, 1)).map(([value, one, two, missing]) => {
      const whole = JSON.stringify(value)
      const said = whole.slice(0, whole.length - missing)
      const [from, to] = one < two ? [one, two] : [two, one]
      return [said.slice(0, from), said.slice(from, to), said.slice(to)].map(piece => ({ type, text: piece }))
    })
  }
}

/** Messages open in their order, and then take turns as the picks say. */
function interleave([messages, picks]: [Update[][], number[]]): Update[] {
  const queues = messages.map(steps => steps.slice())
  const said: Update[] = []
  let opened = 0
  for (let i = 0; ; i += 1) {
    const ready = queues.flatMap((queue, index) => (queue.length > 0 && index <= opened ? [index] : []))
    const index = ready[(picks[i] ?? 0) % ready.length] ?? -1
    const step = queues[index]?.shift()
    if (!step) return said
    said.push(step.type === 'custom' ? step : { ...step, index })
    if (index === opened && opens(step)) opened += 1
  }
}

function opens(update: Update): boolean {
  return update.type === 'delta' ? !isEmpty(update.delta) : update.type !== 'custom'
}

function isEmpty(said: Delta): boolean {
  return ('text' in said && said.text === '') || ('bytes' in said && said.bytes === '')
}
