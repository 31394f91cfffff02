/**
 * Faults at random, the same for the same seed: each strikes, lasts for a moment, and is healed, so that the next one finds a platform that has
 * all it needs. The platform must handle the effect of a fault on running work.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import type { FaultyCluster } from '../support/engines/redis/faulty-cluster.ts'
import type { FaultySentinels } from '../support/engines/redis/faulty-sentinels.ts'
import { hasNativeRedis } from '../support/engines/redis/private-redis.ts'
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
  return strikesOn(cluster, [
    ['kill a master', (faulty, random) => faulty.killMaster(oneOf3(random))],
    ['promote a replica', (faulty, random) => faulty.promote(oneOf3(random))],
    ['promote it, and the master again', promoteTwice],
    ['freeze a master', (faulty, random) => faulty.freezeMaster(oneOf3(random), 200 + random() ** 2 * 4_500)],
    ['part a master from the others', (faulty, random) => faulty.part(oneOf3(random))],
    ['move slots', (faulty, random) => faulty.reshard(oneOf3(random), 1 + Math.floor(random() * 12))],
  ])
}

/** What a master with replicas and Sentinels suffers. */
export function sentinelStrikes(sentinels: () => FaultySentinels | null): Strike[] {
  return strikesOn(sentinels, [
    ['kill the master', faulty => faulty.killMaster()],
    ['kill the master after its replicas were cut off', (faulty, random) => faulty.killMasterAlone(200 + random() * 1_500)],
    ['freeze the master', (faulty, random) => faulty.freezeMaster(200 + random() ** 2 * 4_500)],
    ['freeze the master until it is replaced', faulty => faulty.replaceFrozenMaster()],
    ['promote a replica, and the master again', faulty => faulty.promoteThereAndBack()],
    ['kill the master while a Sentinel is dead', (faulty, random) => faulty.killMasterWithout(oneOf3(random))],
    ['freeze the master and a Sentinel', (faulty, random) => faulty.freezeMasterAnd(oneOf3(random))],
    ['a Sentinel that missed the failover names the old master', (faulty, random) => faulty.misleadBy(oneOf3(random))],
  ])
}

type StrikeOn<Faulty> = [name: string, act: (faulty: Faulty, random: () => number) => Promise<void>]

/** These, and all of `strikes` that one Redis does not suffer. */
function strikesOn<Faulty>(several: () => Faulty | null, own: StrikeOn<Faulty>[]): Strike[] {
  const ofRedis = own.map(([name, act]) => ({
    ...{ name, isLoss: true },
    strike: async (_: Bench, random: () => number) => {
      const faulty = several()
      if (faulty) await act(faulty, random)
    },
  }))
  return [...strikes.filter(({ name }) => !name.includes('Redis')), ...ofRedis]
}

function oneOf3(random: () => number): number {
  return Math.floor(random() * 3)
}

async function promoteTwice(cluster: FaultyCluster, random: () => number): Promise<void> {
  const nth = oneOf3(random)
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
