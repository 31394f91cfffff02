/**
 * The version before and this one side by side, while users work: `npm run test:faults -- --upgrade <tag or commit>`. The version before runs as packages,
 * by default those of the newest release, or of a commit before the first release. Its database is migrated by them, and the first new API migrates it
 * further under load.
 */
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createTestDatabases } from '@rivulet/engines'
import { afterAll, beforeAll, describe, expect, inject, onTestFinished, test } from 'vitest'
import { until } from '../../support/until.ts'
import { type Bench, startBench } from '../bench.ts'
import { createJudge } from '../judge-runs.ts'
import { readSettings } from '../settings.ts'
import { findVersionBefore, installVersion, type VersionBefore } from '../upgrade/version-before.ts'

type Part = 'api' | 'worker'

const { seed, runs, upgradeFrom } = readSettings(process.env)
const seeds = Array.from({ length: runs }, (_, i) => seed + i)
const version = upgradeFrom || findVersionBefore()
const reason = version ? '' : ' (skipped: the history of this checkout has no such version)'
const databases = createTestDatabases({
  url: inject('postgresUrl'),
  migrate: url => before.migrate(url),
  template: 'rivulet_before',
})
let before: VersionBefore

afterAll(() => databases.close())

describe.skipIf(!version)(`an upgrade from ${version}${reason}`, () => {
  let folder: string

  beforeAll(async () => {
    folder = mkdtempSync(join(tmpdir(), 'rivulet-before-'))
    before = await installVersion(version ?? '', folder)
  }, 900_000)
  afterAll(() => rmSync(folder, { recursive: true, force: true }))

  const orders: [string, Part[]][] = [
    ['APIs first', ['api', 'worker']],
    ['workers first', ['worker', 'api']],
  ]
  const cases = seeds.flatMap(current => orders.map(([name, order]) => [name, current, order] as const))

  test.each(cases)('and back, %s, seed %i', { timeout: 600_000 }, async (_, current, order) => {
    const database = await databases.create('upgrade')
    const start = () => startBench({ before, databaseUrl: database.url, env: { ALLOW_NEWER_SCHEMA: 'on' } })
    const { judge, close } = createJudge(start, again => `npm run test:faults -- --upgrade ${version} --seed ${again}`)
    onTestFinished(async () => {
      await close()
      await database.drop()
    })
    // Back again in the opposite order, so that both mixtures are met on both ways.
    const steps = [...order.map(part => ({ part, isBack: false })), ...order.toReversed().map(part => ({ part, isBack: true }))]
    const old = new Set(order)
    const deploy = {
      name: 'deploy',
      strike: async (bench: Bench) => {
        expectPackages(bench, old)
        const step = steps.shift()
        await untilBusy(bench)
        if (step) await bench.deploy(step.part, step.isBack ? before : bench.tree)
        if (step) step.isBack ? old.add(step.part) : old.delete(step.part)
        expectPackages(bench, old)
        await untilBusy(bench)
      },
    }
    const count = steps.length
    await judge({ seed: current, users: 8, known: [deploy], isOver: strikes => strikes >= count })
  })
})

/** The processes of these parts, and no others, run files of the folder with the packages. Only Linux tells. */
function expectPackages(bench: Bench, parts: ReadonlySet<Part>): void {
  if (process.platform !== 'linux') return
  const isInstalled = ({ pid }: { pid: number }) => readFileSync(`/proc/${pid}/cmdline`, 'utf8').includes(`\0${before.folder}/`)
  expect({ api: bench.apis().map(isInstalled), worker: bench.workers().map(isInstalled) }).toEqual({
    api: bench.apis().map(() => parts.has('api')),
    worker: bench.workers().map(() => parts.has('worker')),
  })
}

/** Until this mixture of versions has run a few turns from their beginning to their end. */
async function untilBusy({ platform }: Bench): Promise<void> {
  const { rows } = await platform.pg.query<{ now: Date }>('select now()')
  await until(
    'turns begin and end',
    async () => {
      const { rowCount } = await platform.pg.query('select from turns where queued_at > $1 and finished_at is not null limit 8', [
        rows[0]?.now,
      ])
      return rowCount === 8
    },
    { timeoutMs: 120_000 },
  )
}
