/**
 * Faults at random, the same for the same seed: each strikes, lasts for a moment, and is healed, so that the next one finds a platform that has
 * all it needs. The platform must handle the effect of a fault on running work.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import type { FaultyCluster } from '../support/engines/faulty-cluster.ts'
import { hasNativeRedis } from '../support/engines/private-redis.ts'
import type { Bench } from './bench.ts'

export type Strike = {
  name: string
  /** Redis comes back with less, or as another one. */
  isLoss?: boolean
  /** Only a server from PATH can do that. */
  needsNative?: boolean
  strike: (bench: Bench, random: () => number) => Promise<void>
}

export const strikes: Strike[] = [
  { name: 'kill a worker', strike: async ({ workers }, random) => void (await pick(workers(), random)?.kill()) },
  { name: 'kill an API', strike: async ({ apis }, random) => void (await pick(apis(), random)?.kill()) },
  { name: 'freeze a worker', strike: ({ workers }, random) => freeze(pick(workers(), random), random) },
  { name: 'freeze an API', strike: ({ apis }, random) => freeze(pick(apis(), random), random) },
  // It has its grace, while another takes its place.
  { name: 'stop a worker', strike: async ({ workers }, random) => void pick(workers(), random)?.kill('SIGTERM') },
  { name: 'stop an API', strike: async ({ apis }, random) => void (await pick(apis(), random)?.kill('SIGTERM')) },
  { name: 'a failpoint in an API', strike: ({ apis, arm }, random) => replace(pick(apis(), random), arm, random) },
  { name: 'a failpoint in a worker', strike: ({ workers, arm }, random) => replace(pick(workers(), random), arm, random) },
  { name: 'restart Redis', isLoss: true, needsNative: true, strike: ({ server }, random) => restart(server, random) },
  { name: 'cut the end of Redis', isLoss: true, needsNative: true, strike: ({ server }, random) => restart(server, random, server.mark()) },
  { name: 'wipe Redis', isLoss: true, strike: async ({ server }) => void (await server.client.flushall()) },
  { name: 'freeze Redis', needsNative: true, strike: ({ server }, random) => freeze(server, random) },
  { name: 'Redis out of reach', strike: ({ redis }, random) => during(redis.down, redis.up, random) },
  { name: 'Redis silent', strike: ({ redis }, random) => during(redis.blackhole, redis.up, random) },
  { name: 'Redis loses replies', strike: ({ redis }, random) => loseReplies(() => redis.dropReply(':log:'), random) },
  { name: 'Redis connections reset', strike: async ({ redis }) => redis.reset() },
  { name: 'Redis far away', strike: ({ redis }, random) => during(() => redis.slow(pace(random)), redis.up, random) },
  { name: 'Postgres out of reach', strike: ({ postgres }, random) => during(postgres.down, postgres.up, random) },
  { name: 'Postgres silent', strike: ({ postgres }, random) => during(postgres.blackhole, postgres.up, random) },
  { name: 'Postgres loses commits', strike: ({ postgres }, random) => loseReplies(() => postgres.dropOnReply('COMMIT', 'commit'), random) },
  { name: 'Postgres connections reset', strike: async ({ postgres }) => postgres.reset() },
  { name: 'Postgres far away', strike: ({ postgres }, random) => during(() => postgres.slow(pace(random)), postgres.up, random) },
]

/** What a cluster suffers. Another master opens its logs anew, also if it has lost nothing. */
export function clusterStrikes(cluster: () => FaultyCluster | null): Strike[] {
  const own: [string, (faulty: FaultyCluster, nth: number, random: () => number) => Promise<void>][] = [
    ['kill a master', (faulty, nth) => faulty.killMaster(nth)],
    ['promote a replica', (faulty, nth) => faulty.promote(nth)],
    ['promote it, and the master again', promoteTwice],
    ['freeze a master', (faulty, nth, random) => faulty.freezeMaster(nth, 200 + random() ** 2 * 4_500)],
    ['part a master from the others', (faulty, nth) => faulty.part(nth)],
    ['move slots', (faulty, nth, random) => faulty.reshard(nth, 1 + Math.floor(random() * 12))],
  ]
  const ofCluster = own.map(([name, act]) => ({
    ...{ name, isLoss: true },
    strike: async (_: Bench, random: () => number) => {
      const faulty = cluster()
      if (faulty) await act(faulty, Math.floor(random() * 3), random)
    },
  }))
  return [...strikes.filter(({ name }) => !name.includes('Redis')), ...ofCluster]
}

async function promoteTwice(cluster: FaultyCluster, nth: number): Promise<void> {
  await cluster.promote(nth)
  await cluster.promote(nth)
}

/** Those that can happen here, with or without losses. */
export function strikesFor({ mayLose }: { mayLose: boolean }): Strike[] {
  return strikes.filter(({ isLoss, needsNative }) => (mayLose || !isLoss) && (hasNativeRedis || !needsNative))
}

export async function harass(bench: Bench, random: () => number, known: readonly Strike[]): Promise<string> {
  const next = pick(known, random)
  if (!next) throw new Error('There is nothing to choose from')
  if (next.isLoss) bench.noteLoss()
  await next.strike(bench, random)
  await bench.revive()
  return next.name
}

export function pick<T>(from: readonly T[], random: () => number): T | undefined {
  return from[Math.floor(random() * from.length)]
}

/** For a moment, or for longer than a lease. */
function moment(random: () => number): Promise<void> {
  return sleep(200 + random() ** 2 * 4_500)
}

async function freeze(frozen: { freeze(): void; wake(): void } | undefined, random: () => number): Promise<void> {
  frozen?.freeze()
  await moment(random)
  frozen?.wake()
}

async function during(begin: () => void, end: () => void, random: () => number): Promise<void> {
  begin()
  await moment(random)
  end()
}

async function restart(server: Bench['server'], random: () => number, mark?: number): Promise<void> {
  if (mark !== undefined) await sleep(100 + random() * 1_000)
  await server.kill()
  await moment(random)
  await server.restart(mark)
}

async function loseReplies(drop: () => Promise<void>, random: () => number): Promise<void> {
  const count = 1 + Math.floor(random() * 4)
  for (let i = 0; i < count; i += 1) await Promise.race([drop(), sleep(1_000)])
}

function pace(random: () => number) {
  return { latencyMs: Math.floor(random() * 60), sliceBytes: 1 + Math.floor(random() * 200), bytesPerSecond: 200_000 }
}

/** Its replacement has a fault: once, after a while, or now and then. */
async function replace(process: { kill(): Promise<unknown> } | undefined, arm: Bench['arm'], random: () => number): Promise<void> {
  const how = [
    `kill@${1 + Math.floor(random() * 8)}`,
    'throw%0.2',
    `stall:${300 + Math.floor(random() * 3_000)}@${1 + Math.floor(random() * 8)}`,
    `delay:${300 + Math.floor(random() * 3_000)}%0.2`,
  ]
  arm(how[Math.floor(random() * how.length)] ?? '', random)
  await process?.kill()
}
