/**
 * Random plans of a task's updates: turns with and without input, attempts that supersede each other, interleaved messages of every type, text
 * cut within characters, bytes cut within base64 groups, JSON cut anywhere, overrides, late and misplaced updates, aborts and throws.
 */
import fc from 'fast-check'
import type { ContentType } from '../src/entities/content.ts'
import {
  type Content,
  custom,
  type Delta,
  data,
  delta,
  done,
  full,
  type JsonObject,
  media,
  reasoning,
  start,
  text,
  toolRequest,
  toolResponse,
  type Update,
} from '../src/index.ts'
import { base64Of } from '../src/values/base64.ts'

/** An update whose index counts from its own message. */
type Step = Update
type Ending = 'complete' | 'failed' | 'aborted' | 'lost'
export type AttemptPlan = { messages: Step[][]; picks: number[]; ending: Ending }
export type TurnPlan = { inputs: Content[]; attempts: AttemptPlan[] }

/** Small, so that histories reach them. */
export const limits = { deltaBytes: 12, turnBytes: 3000, jsonDepth: 8 }
const tooMuch = 'x'.repeat(limits.turnBytes + 1)

const chunk = fc
  .array(fc.constantFrom('a', ' ', 'é', '漢', '😀', '\ud83d', '\ude00', '\0', '"', '\n'), { maxLength: 6 })
  .map(units => units.join(''))
const word = fc.constantFrom('', 'a', 'b c', 'é漢', '😀', '"\\\n', 'key', '__proto__')
const json = fc.letrec<{ value: unknown }>(tie => ({
  value: fc.oneof(
    { maxDepth: 3, withCrossShrink: true },
    fc.constantFrom(null, true, 0, -1.5, 1e21),
    word,
    fc.array(tie('value'), { maxLength: 3 }),
    fc.dictionary(word, tie('value'), { maxKeys: 3, noNullPrototype: true }),
  ),
})).value as fc.Arbitrary<null>
const metadata = fc.dictionary(fc.constantFrom('a', 'b', 'é\0'), json, { maxKeys: 2, noNullPrototype: true }) as fc.Arbitrary<JsonObject>
const bytes = fc.uint8Array({ maxLength: 20 })
const cuts = fc.array(fc.nat(40), { maxLength: 5 })

const valueDelta: fc.Arbitrary<Delta> = json.map(value => ({ type: 'data', value }))
const metadataDelta: fc.Arbitrary<Delta> = metadata.map(value => ({ type: 'metadata', metadata: value }))

const deltasOf: Record<ContentType, fc.Arbitrary<Delta[]>> = {
  text: several(
    chunk.map(piece => ({ type: 'text', text: piece })),
    metadataDelta,
  ),
  reasoning: several(
    fc
      .tuple(fc.constantFrom('reasoning_summary' as const, 'reasoning_content' as const), fc.nat(2), chunk)
      .map(([type, index, piece]) => ({ type, index, text: piece })),
    metadataDelta,
  ),
  data: jsonDeltas('data_json', valueDelta),
  tool_request: jsonDeltas('tool_request', metadataDelta),
  tool_response: several(
    chunk.map(piece => ({ type: 'tool_response', text: piece })),
    valueDelta,
  ),
  media: fc.tuple(bytes, cuts).map(([whole, at]) => cutBytes(whole, at).map(piece => ({ type: 'media', bytes: base64Of(piece) }))),
}

const contents: Record<ContentType, fc.Arbitrary<Content>> = {
  text: fc.tuple(chunk, fc.constantFrom('plain' as const, 'markdown' as const)).map(([value, format]) => text(value, format)),
  reasoning: fc
    .tuple(fc.array(chunk, { maxLength: 2 }), fc.array(chunk, { maxLength: 2 }))
    .map(([summary, parts]) => reasoning(summary, parts)),
  data: json.map(value => data(value)),
  tool_request: json.map(value => toolRequest('call-1', 'search', value)),
  tool_response: fc.oneof(fc.constant(null), chunk, json).map(value => toolResponse('call-1', 'search', value)),
  media: bytes.map(value => media('image/png', base64Of(value))),
}

const contentType = fc.constantFrom(...(Object.keys(contents) as ContentType[]))

/** Updates that may come at any time; most of them are misplaced. */
const intrusion: fc.Arbitrary<Step> = fc.constantFrom<Step>(
  done(0),
  done(3),
  start(0, text('again')),
  custom('tick', { n: 1 }),
  custom('tock', null, 0),
  delta(0, 'text where it may not fit'),
  delta(0, { type: 'data', value: [1] }),
  delta(0, { type: 'media', bytes: 'AQ==' }),
  delta(0, { type: 'tool_response', text: '\ud83d' }),
  delta(0, tooMuch),
  delta(2, 'beyond'),
)

const closing: fc.Arbitrary<Step | null> = fc.oneof(
  fc.constantFrom(
    null,
    done(0),
    done(0, { stopReason: 'length', usage: { outputTokens: 3 } }),
    done(0, { status: 'failed', error: { code: 'x', message: 'y' } }),
  ),
  contentType.chain(type => contents[type]).map(content => full(0, content)),
)

const messagePlan: fc.Arbitrary<Step[]> = contentType.chain(type =>
  fc
    .record({
      base: fc.option(fc.tuple(contents[type], fc.option(metadata, { nil: undefined })), { freq: 2 }),
      deltas: deltasOf[type],
      closing,
      intruder: fc.option(fc.tuple(fc.nat(9), intrusion), { freq: 2 }),
    })
    .map(plan => {
      const steps: Step[] = plan.deltas.map(each => delta(0, each))
      if (plan.base) steps.unshift(start(0, ...plan.base))
      if (plan.closing) steps.push(plan.closing)
      if (plan.intruder) steps.splice(plan.intruder[0], 0, plan.intruder[1])
      return steps
    }),
)

export const attemptPlans = attemptsThat('complete', 'failed', 'aborted')

const turnPlan: fc.Arbitrary<TurnPlan> = fc
  .tuple(
    fc.array(
      word.map(value => text(value)),
      { maxLength: 3 },
    ),
    fc.array(attemptsThat('failed', 'lost'), { maxLength: 1 }),
    attemptPlans,
  )
  .map(([inputs, superseded, last]) => ({ inputs, attempts: [...superseded, last] }))

export const taskPlans: fc.Arbitrary<TurnPlan[]> = fc.array(turnPlan, { minLength: 1, maxLength: 2 })

/** The pieces of a text, cut at any UTF-16 unit. */
export function cutText(whole: string, at: readonly number[]): string[] {
  return between(whole.length, at).map(([from, to]) => whole.slice(from, to))
}

export function cutBytes(whole: Uint8Array, at: readonly number[]): Uint8Array[] {
  return between(whole.length, at).map(([from, to]) => whole.slice(from, to))
}

function between(length: number, at: readonly number[]): [number, number][] {
  const points = [0, ...at.map(point => point % (length + 1)).sort((a, b) => a - b), length]
  return points.slice(1).map((to, i) => [points[i] ?? 0, to])
}

function several(mostly: fc.Arbitrary<Delta>, sometimes: fc.Arbitrary<Delta>): fc.Arbitrary<Delta[]> {
  return fc.array(fc.oneof({ weight: 5, arbitrary: mostly }, { weight: 1, arbitrary: sometimes }), { maxLength: 6 })
}

/** JSON text in pieces, sometimes with a piece missing, an extra piece, or another delta in between. */
function jsonDeltas(type: 'data_json' | 'tool_request', between: fc.Arbitrary<Delta>): fc.Arbitrary<Delta[]> {
  const fault = fc.constantFrom('none', 'none', 'none', 'cut', ' ', '}', '\ud83d')
  return fc.tuple(json, cuts, fault, fc.option(fc.tuple(fc.nat(5), between), { freq: 2 })).map(([value, at, tail, other]) => {
    const whole = JSON.stringify(value)
    const faulty = tail === 'none' ? whole : tail === 'cut' ? whole.slice(0, -1) : whole + tail
    const deltas: Delta[] = cutText(faulty, at).map(piece => ({ type, text: piece }))
    if (other) deltas.splice(other[0], 0, other[1])
    return deltas
  })
}

function attemptsThat(...endings: Ending[]): fc.Arbitrary<AttemptPlan> {
  return fc.record({
    messages: fc.array(messagePlan, { minLength: 1, maxLength: 4 }),
    picks: fc.array(fc.nat(11), { minLength: 12, maxLength: 24 }),
    ending: fc.constantFrom(...endings),
  })
}
