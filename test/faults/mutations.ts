/** Rules of ours that can be switched off in an armed tree, each with what has to happen for it to be missed. */
import type { Keys } from '@rivulet/broker'
import { compareCursors, origin, parseCursor } from '@rivulet/protocol'
import { rest } from '../support/agents/scripts.ts'
import { until } from '../support/until.ts'
import type { Viewer } from '../support/viewers/viewer.ts'
import type { Change } from './armed-tree.ts'
import type { Bench } from './bench.ts'
import { hasHeard, paramsOf, type Story } from './checker/story.ts'

type Mutation = {
  name: string
  changes: Change[]
  /** How many it takes. Default 1. */
  workers?: number
  happen: (bench: Bench) => Promise<void>
}

export const mutations: Mutation[] = [
  {
    name: 'the fence: a worker that has lost its turn is refused',
    changes: [
      { rule: 'fence', becomes: 'elseif tonumber(logEpoch) < tonumber(epoch) then' },
      { rule: 'accept', becomes: "result = 'ok'; epoch = logEpoch" },
    ],
    workers: 2,
    happen: wakeZombie,
  },
  {
    name: 'the gap check: what does not follow the last append is refused',
    changes: [
      { rule: 'gap', becomes: 'elseif false then' },
      { rule: 'new entries', becomes: 'for entry = math.max(0, number - first + 1), count - 1 do' },
    ],
    happen: loseEnd,
  },
  {
    name: 'the duplicate check: what was appended before is not appended again',
    changes: [
      { rule: 'duplicate', becomes: 'elseif false then' },
      { rule: 'new entries', becomes: 'for entry = 0, count - 1 do' },
    ],
    happen: loseReplies,
  },
  {
    name: 'commit before announcing',
    changes: [
      {
        at: 'folded',
        insert: `await announcing.announceEnds([{ ...turn, ...end, finishedAt: new Date() }], closed.events, [])
          await new Promise(resolve => setTimeout(resolve, 1_000))`,
      },
    ],
    happen: finishOne,
  },
  {
    name: 'the synchronous join: a snapshot, and everything after it',
    changes: [
      {
        at: 'feed opened',
        // Every viewer gets the text of the feed's first snapshot, and what follows its position of now.
        insert: `if (!feed.first) {
          const { snapshot } = feed
          feed.snapshot = (...about) => {
            const made = snapshot(...about)
            feed.first ??= made
            return { ...made, shared: feed.first.shared }
          }
        }`,
      },
    ],
    happen: joinAllTheTime,
  },
  {
    name: 'the first answer: a wait that was answered accepts no other',
    changes: [
      {
        at: 'answered',
        // Another answer takes the place of the first one.
        insert: `await db.execute("update waits set answer = jsonb_set(answer::jsonb, '{action}', to_jsonb((case answer->>'action' when 'accept' then 'decline' else 'accept' end)::text))::json where status = 'answered' and turn = '" + turn.id + "'")`,
      },
    ],
    happen: askTwice,
  },
  {
    name: 'the kept messages: a turn is resumed with what it has said',
    // It goes on behind them, as if it had said nothing.
    changes: [
      {
        at: 'claim answered',
        insert: "if (claim.result === 'claimed') Object.assign(claim, { firstIndex: claim.firstIndex + claim.kept.length, kept: [] })",
      },
    ],
    happen: askTwice,
  },
]

/** A worker is frozen, its turn is run by another, and it wakes with much to say while the other still speaks. */
async function wakeZombie({ crowd, platform }: Bench): Promise<void> {
  const story: Story = { label: 'zombie', turnNumber: 1, words: 40, restMs: 80 }
  const { attempts, ...params } = paramsOf(story) as { attempts: Record<string, object[]> }
  // The first attempt rests where it is going to be frozen, and then says all the rest at once.
  const [one = {}, , two = {}, , ...others] = attempts['1'] ?? []
  const first = [one, two, rest(4_000), ...others.filter(step => !('sleep' in step))]
  const task = await crowd.promise(story, { params: { ...params, attempts: { ...attempts, 1: first } } })
  const viewer = crowd.join(task)
  await viewer.until('the first words', viewer => hasHeard(viewer, 1))
  const { rows } = await platform.pg.query<{ worker: string }>('select worker from turns where task = $1', [task])
  const zombie = platform.workers.find(({ lines }) =>
    lines.some(({ msg, worker }) => msg === 'worker is ready' && worker === rows[0]?.worker),
  )
  const frozenAt = performance.now()
  zombie?.freeze()
  try {
    await viewer.until('the second attempt has said more', viewer => hasHeard(viewer, 9, 2), { timeoutMs: 60_000 })
    // Its rest is over when it wakes.
    await until('it is late', () => performance.now() - frozenAt > 4_000)
  } finally {
    zombie?.wake()
  }
}

/** A log goes back to where it stood a moment ago; a viewer that got the lost entries reconnects to an API that has never followed the task, when more was appended. */
async function loseEnd(bench: Bench): Promise<void> {
  const { crowd, server, platform } = bench
  const task = await crowd.promise({ label: 'lossy', turnNumber: 1, words: 100, restMs: 40 })
  const viewer = crowd.join(task)
  await viewer.until('a few words', viewer => hasHeard(viewer, 4))
  const kept = await dump(server.client, platform.keys, task)
  await viewer.until('more words', viewer => hasHeard(viewer, 9))
  bench.noteLoss()
  await Promise.all(bench.apis().map(api => api.kill()))
  const heard = viewer.cursor() ?? origin
  const restore = server.client.multi()
  for (const [key, value] of kept) restore.restore(key, 0, value, 'REPLACE')
  for (const [error] of (await restore.exec()) ?? []) if (error) throw error
  await until('the log has passed the last received entry, or no worker continues it', async () => {
    const [last] = await server.client.xrevrange(platform.keys.stream(task), '+', '-', 'COUNT', 1)
    return compareCursors(parseCursor(last?.[0] ?? '') ?? origin, heard) > 0 || bench.results(task).includes('gap')
  })
  await bench.revive()
}

async function dump(redis: Bench['server']['client'], keys: Keys, task: string): Promise<[string, Buffer][]> {
  const names = [keys.stream(task), keys.state(task)]
  const [stream, state] = (await redis.multi().dumpBuffer(keys.stream(task)).dumpBuffer(keys.state(task)).exec()) ?? []
  return [stream, state].map((reply, i) => [names[i] ?? '', reply?.[1] as Buffer])
}

/** The replies to some appends are lost. */
async function loseReplies({ crowd, redis }: Bench): Promise<void> {
  const task = await crowd.promise({ label: 'deaf', turnNumber: 1, words: 40, restMs: 40 })
  const viewer = crowd.join(task)
  await viewer.until('it begins', ({ text }) => text() !== '')
  // Of the worker alone: an API reads this log, too.
  for (let i = 0; i < 4; i += 1) await redis.dropReply(`"message.delta","task":"${task}"`)
}

async function finishOne({ crowd }: Bench): Promise<void> {
  const task = await crowd.promise({ label: 'plain', turnNumber: 1, words: 3, restMs: 30 })
  await crowd.join(task).ended
}

/** Viewers come at every moment of a turn. */
async function joinAllTheTime({ crowd }: Bench): Promise<void> {
  const task = await crowd.promise({ label: 'watched', turnNumber: 1, words: 80, restMs: 40 })
  const first: Viewer = crowd.join(task)
  await until(
    'it is over',
    () => {
      if (crowd.viewers.length < 40) crowd.join(task)
      return first.state().status === 'completed'
    },
    { intervalMs: 80, timeoutMs: 60_000 },
  )
}

/** Two people disagree about each of two questions; the turn parks at the first. */
async function askTwice({ crowd }: Bench): Promise<void> {
  const task = await crowd.promise({ label: 'asking', turnNumber: 1, words: 30, restMs: 10, asks: 2 })
  await crowd.join(task).ended
}
