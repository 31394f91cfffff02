/**
 * The version before and this one side by side, while users work: `npm run test:faults -- --upgrade <commit>`. There are no tags yet, so the version before
 * is a commit of this repository: by default the newest one that lacks the last two migrations. Its programs are bundled from their sources, with the
 * packages that are installed here. Its database is its own, and the first new API migrates it under load.
 */
import { execFileSync } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { migrate } from '@rivulet/api/migrate'
import { createTestDatabases } from '@rivulet/engines'
import { afterAll, describe, inject, onTestFinished, test } from 'vitest'
import { bundleTree } from '../../support/platform/platform-process.ts'
import { until } from '../../support/until.ts'
import { createArmedTree } from '../armed-tree.ts'
import { type Bench, startBench } from '../bench.ts'
import { createJudge } from '../judge-runs.ts'
import { readSettings } from '../settings.ts'

type Part = 'api' | 'worker'

const { seed, runs, upgradeFrom } = readSettings(process.env)
const seeds = Array.from({ length: runs }, (_, i) => seed + i)
const home = fileURLToPath(new URL('../../..', import.meta.url))
const commit = upgradeFrom || commitBefore()
const reason = commit ? '' : ' (skipped: the history of this checkout has no such commit)'
const sources = mkdtempSync(join(tmpdir(), 'rivulet-before-'))
if (commit) execFileSync('sh', ['-c', 'git archive "$1" | tar -x -C "$2"', 'sh', commit, sources], { cwd: home })
const before = createTestDatabases({
  url: inject('postgresUrl'),
  migrate: url => migrate(url, { folder: join(sources, 'migrations') }),
  template: 'rivulet_before',
})

afterAll(async () => {
  await before.close()
  rmSync(sources, { recursive: true, force: true })
})

describe.skipIf(!commit)(`an upgrade from ${commit?.slice(0, 7)}${reason}`, () => {
  const orders: [string, Part[]][] = [
    ['APIs first', ['api', 'worker']],
    ['workers first', ['worker', 'api']],
  ]
  const cases = seeds.flatMap(current => orders.map(([name, order]) => [name, current, order] as const))

  test.each(cases)('and back, %s, seed %i', { timeout: 600_000 }, async (_, current, order) => {
    const database = await before.create('upgrade')
    const [old, next] = [createArmedTree([], sources), createArmedTree()]
    await bundleTree(next)
    const start = () => startBench({ tree: old, databaseUrl: database.url, env: { ALLOW_NEWER_SCHEMA: 'on' } })
    const { judge, close } = createJudge(start, again => `npm run test:faults -- --upgrade ${commit} --seed ${again}`)
    onTestFinished(async () => {
      await close()
      next.remove()
      await database.drop()
    })
    // Back again in the opposite order, so that both mixtures are met on both ways.
    const steps = [...order.map(part => ({ part, tree: next })), ...order.toReversed().map(part => ({ part, tree: old }))]
    const deploy = {
      name: 'deploy',
      strike: async (bench: Bench) => {
        const step = steps.shift()
        await untilBusy(bench)
        if (step) await bench.deploy(step.part, step.tree)
        await untilBusy(bench)
      },
    }
    const count = steps.length
    await judge({ seed: current, users: 8, known: [deploy], isOver: strikes => strikes >= count })
  })
})

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

/** The one before the last but one that added a migration. */
function commitBefore(): string | null {
  try {
    const added = execFileSync('git', ['log', '--diff-filter=A', '--format=%H', '--', 'migrations/*.sql'], { cwd: home, encoding: 'utf8' })
    return execFileSync('git', ['rev-parse', `${added.split('\n')[1]}~1`], {
      cwd: home,
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'ignore'],
    }).trim()
  } catch {
    return null
  }
}
