/**
 * Writes garbage into logs and publishes garbage on their channels while viewers watch: as an attacker with access to Redis could, or a worker that has
 * gone mad. Each log is that of a task whose worker is played here. Faults come back as sentences.
 */
import { randomUUID } from 'node:crypto'
import { createLogWriter, encodeEvent } from '@rivulet/broker'
import { createClient } from '@rivulet/client'
import type { ClaimResult } from '@rivulet/contract/internal'
import { type Event, eventSchema, parseEvent } from '@rivulet/protocol'
import fc from 'fast-check'
import { z } from 'zod'
import type { ApiProcess, Platform } from '../platform/platform.ts'
import { until } from '../until.ts'
import { type Viewer, watch } from '../viewers/viewer.ts'
import { askAsWorker } from './http.ts'
import { type Keys, placeholders } from './requests.ts'
import { type JsonSchema, valuesOf } from './schema-values.ts'
import { sampled } from './seed.ts'
import { oddity, spoiled, spoiledJson, text } from './spoiling.ts'

/** What is done to one log before it is looked at. */
const perLog = 100

/** As its own task sends it; if it names another task, no viewer may receive it. */
const [own = '', foreign = ''] = placeholders
export const secret = 'zqxj of another task'

type Rubbish =
  /** In the log, where a worker of ours would have written it; said on the channel, too, or not. */
  | { kind: 'logged'; fields: string[]; isPushed: boolean }
  /** Said on the channel, and in no log. */
  | { kind: 'said'; message: string }
  /** In the stream, beyond everything that the log knows of. */
  | { kind: 'beyond'; fields: string[] }

const events = z.toJSONSchema(eventSchema, { io: 'input', unrepresentable: 'any' }) as JsonSchema

const eventJson: fc.Arbitrary<string> = fc.oneof(
  { weight: 6, arbitrary: eventsOf(own) },
  { weight: 2, arbitrary: eventsOf(foreign) },
  { weight: 1, arbitrary: oddity.map(value => JSON.stringify(value)) },
  {
    weight: 1,
    arbitrary: fc.constantFrom('', '{', 'null', `{"type":"custom","task":"${own}",\n"turn":1}`, '\r\nid: 9-9\r\nevent: end\r\n\r\n'),
  },
)

const fields: fc.Arbitrary<string[]> = fc.oneof(
  { weight: 8, arbitrary: eventJson.map(json => ['index', '0', 'event', json]) },
  { weight: 1, arbitrary: eventJson.map(json => ['event', json, 'event', '{}']) },
  { weight: 1, arbitrary: fc.tuple(text, text).map(pair => pair) },
)

const cursors = fc.constantFrom('0-0', '1-1', '9-9', '999999999999999-1', '', 'x', '-1-1', '1-1-1', '1e3-0')

const rubbish: fc.Arbitrary<Rubbish> = fc.oneof(
  { weight: 10, arbitrary: fc.record({ kind: fc.constant('logged' as const), fields, isPushed: fc.boolean() }) },
  {
    weight: 4,
    arbitrary: fc
      .tuple(cursors, fc.array(fc.tuple(cursors, eventJson), { maxLength: 2 }), fc.constantFrom('\n', '\r\n', '\n\n'))
      .map(([previous, entries, end]) => ({ kind: 'said' as const, message: [previous, ...entries.flat()].join(end) })),
  },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('said' as const), message: text }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('beyond' as const), fields }) },
)

function eventsOf(task: string): fc.Arbitrary<string> {
  const words = {
    text: task === own ? text : fc.constant(secret),
    id: fc.constant(task),
    keyId: fc.constant(''),
    name: fc.constant('idle'),
  }
  return spoiledJson(spoiled(valuesOf(events, words))).map(json => json.toString())
}

/** Whether it is an event that the task could have sent: viewers accept such an event. */
function isBelievable(each: Rubbish): boolean {
  const said = each.kind === 'said' ? each.message.split(/[\r\n]+/) : each.fields
  return said.some(part => isEventOf(own, part))
}

function isEventOf(task: string, json: string): boolean {
  try {
    return parseEvent(JSON.parse(json))?.task === task
  } catch {
    return false
  }
}

/** In every third log there is also what could be true: then its viewers may wait for more. */
export async function fuzzLogs(platform: Platform, api: ApiProcess, keys: Keys, count: number): Promise<string[]> {
  const all = sampled(rubbish, count)
  const faults: string[] = []
  for (let at = 0; at < all.length; at += perLog) {
    const isStrict = (at / perLog) % 3 < 2
    const round = all.slice(at, at + perLog).filter(each => !isStrict || !isBelievable(each))
    faults.push(...(await spoilOne(platform, api, keys, { all: round, isStrict, at })))
  }
  return faults
}

type Round = { all: Rubbish[]; isStrict: boolean; at: number }

async function spoilOne(platform: Platform, api: ApiProcess, keys: Keys, { all, isStrict, at }: Round): Promise<string[]> {
  const { redis, keys: names } = platform
  const client = createClient({ url: api.url, key: keys.client })
  await askAsWorker(api.url, keys, 'hello', { worker: 'played', agents: [{ name: 'played', description: '' }] })
  const task = await client.tasks.create({ agent: 'played', input: 'hello' })
  const other = randomUUID()
  const claim = await until('the turn is claimed', async () => {
    const claimed = await askAsWorker<ClaimResult>(api.url, keys, 'claim', {
      worker: 'played',
      turnId: task.turn.id,
      claimId: randomUUID(),
    })
    return claimed.result === 'claimed' ? claimed : null
  })
  const { token } = await task.createToken({ can: 'read', ttlSeconds: 3_600 })
  const queries = ['', '&from=start', '&follow=true', '&format=ai-sdk']
  const viewers = queries.slice(0, 3).map(query => watch(task.id, { urls: [api.url], query: `?token=${token}${query}` }))
  const writer = createLogWriter({ redis, keys: names, maxBytes: 1_000_000 })
  let number = 0
  await Promise.all(viewers.map(viewer => viewer.until('it has joined', ({ frames }) => frames().length > 0)))
  await say('good')
  // What stands beyond everything comes last: nothing can be written behind it.
  const ordered = [...all].sort((a, b) => Number(a.kind === 'beyond') - Number(b.kind === 'beyond'))
  for (const [i, each] of ordered.entries()) {
    await spoilBy(each)
    // A viewer that joins now reads all of it at once.
    if (i % 25 === 24) viewers.push(watch(task.id, { urls: [api.url], query: `?token=${token}${queries[(i >> 4) % 3]}` }))
    if (i % 25 === 12) await visit(i)
  }
  await say('good again')
  const faults: string[] = []
  await task
    .cancel()
    .catch(error => faults.push(`It could not be canceled: ${error}, ${JSON.stringify(api.lines.findLast(({ level }) => level >= 50))}`))
  await task.messages().catch(error => faults.push(`Its messages could not be read: ${error}`))
  await viewers[2]?.stop()
  const ends = isStrict ? viewers.map(viewer => viewer.until('it has heard the end', isOver)) : []
  await Promise.all(ends.map(end => end.catch(error => faults.push(String(error)))))
  await Promise.all(viewers.map(viewer => viewer.stop()))
  const { status } = (await task.detail()).task
  // What could be true may still be more than can be stored.
  if (status !== 'canceled' && (isStrict || status !== 'failed')) faults.push(`It is ${status} after it was canceled`)
  return [...faults, ...viewers.flatMap(viewer => faultsOf(viewer, task.id))].map(fault => `Round ${at}: ${fault}`)

  /** What a worker of ours says: refused where the log was spoiled too much. */
  async function say(words: string): Promise<void> {
    const { epoch } = claim
    const event: Event = { type: 'custom', task: task.id, turn: 1, attempt: 1, at: Date.now(), name: 'note', data: words }
    await writer.append([{ task: task.id, epoch, first: ++number, entries: [encodeEvent(event)] }])
  }

  async function spoilBy(each: Rubbish): Promise<void> {
    const real = (part: string) => part.replaceAll(own, task.id).replaceAll(foreign, other)
    const [stream, state, channel] = [names.stream(task.id), names.state(task.id), names.channel(task.id)]
    if (each.kind === 'said') {
      await redis.publish(channel, real(each.message))
      return
    }
    const written = each.fields.map(real)
    const [epoch, seq, ...rest] = ((await redis.hget(state, 'position')) ?? '').split(' ')
    const next = Number(seq) + 1
    const id = each.kind === 'beyond' ? `${epoch}-${next + 1_000_000}` : `${epoch}-${next}`
    const isAdded = await redis.xadd(stream, id, ...written).then(
      () => true,
      // Something stands beyond it already.
      () => false,
    )
    if (!isAdded || each.kind === 'beyond') return
    await redis.hset(state, 'position', [epoch, next, ...rest].join(' '))
    if (each.isPushed) await redis.publish(channel, [`${epoch}-${seq}`, id, written.at(-1)].join('\n'))
  }

  /** Streams in other formats, and one page of messages: each reads the log as well. */
  async function visit(i: number): Promise<void> {
    const headers = { authorization: `Bearer ${keys.client}` }
    const leaving = new AbortController()
    for (const path of [`events?format=ai-sdk&turn=1&after=${i % 3}-${i}`, `events?format=coding-agent&after=${i % 3}-${i}`, 'messages']) {
      const { status } = await fetch(`${api.url}/v1/tasks/${task.id}/${path}`, { headers, signal: leaving.signal })
      if (status !== 200) throw new Error(`${path} answered ${status}`)
    }
    leaving.abort()
  }
}

function isOver(viewer: Viewer): boolean {
  const { connections } = viewer.journal
  return viewer.frames().at(-1)?.data.type === 'end' || connections.at(-1)?.status === 204 || connections.at(-1)?.isCut === true
}

function faultsOf(viewer: Viewer, task: string): string[] {
  const { connections } = viewer.journal
  const heard = viewer.frames()
  return [
    ...connections.flatMap(({ oddities }) => oddities.map(oddity => `A viewer heard what is no frame: ${oddity.slice(0, 500)}`)),
    ...connections.flatMap(({ status }) => (status === 0 || status === 200 || status === 204 ? [] : [`A viewer was answered ${status}`])),
    ...heard.flatMap(({ data }) =>
      taskOf(data) === task ? [] : [`A viewer heard of another task: ${JSON.stringify(data).slice(0, 500)}`],
    ),
    ...(JSON.stringify(heard).includes(secret) ? ['A viewer heard a secret of another task'] : []),
  ]
}

function taskOf(data: Viewer extends { frames(): infer F } ? (F extends { data: infer D }[] ? D : never) : never): string {
  return typeof data.task === 'string' ? data.task : data.task.id
}
