/**
 * `npm run test:faults`: the bench on demand. Without arguments, the mixed nemesis from a seed of its own choice.
 *
 *   --seed N        where randomness begins; printed, so that a run can be had again
 *   --runs N        so many seeds, or so often
 *   --only NAME     one fault of the catalog, by its number or a part of its name
 *   --all           every fault of the catalog, and the mixed nemesis
 *   --soak MINUTES  one platform for so long
 *   --cluster       on a Redis Cluster of six servers; needs a redis-server 7 or newer on PATH
 *   --sentinel      on a Redis master with two replicas and three Sentinels; needs the same
 *   --upgrade FROM  from the packages of this tag or commit to this version and back, while users work
 *   --transport T   how the workers get their turns and write: redis, or http, with workers that cannot reach Redis; default redis
 */
import { spawnSync } from 'node:child_process'
import { randomInt } from 'node:crypto'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { faults } from './catalog.ts'
import { toEnvironment } from './settings.ts'

const values = readOptions()
if (!['redis', 'http'].includes(values.transport)) {
  console.error(`--transport takes redis or http, not ${values.transport}`)
  process.exit(1)
}
const mixed = 'test/faults/demand/mixed.test.ts'
const limits = 'test/faults/demand/limits.test.ts'
const onCluster = 'test/faults/demand/cluster.test.ts'
const onSentinels = 'test/faults/demand/sentinel.test.ts'
const failover = 'test/faults/demand/failover.test.ts'
const upgrade = 'test/faults/demand/upgrade.test.ts'
const seed = Number(values.seed ?? randomInt(1, 1_000_000))
const files = chosenFiles()
console.log(`seed ${seed}: ${files.join(', ')}`)
// A nemesis knows about runs; everything else is simply run again.
const repeats = files.some(file => [mixed, onCluster, onSentinels, failover, upgrade, limits].includes(file)) ? 1 : Number(values.runs)
for (let run = 1; run <= repeats; run += 1) {
  const code = runTests()
  if (code !== 0) process.exit(code)
}

function readOptions() {
  try {
    return parseArgs({
      options: {
        seed: { type: 'string' },
        runs: { type: 'string', default: '1' },
        only: { type: 'string' },
        all: { type: 'boolean', default: false },
        soak: { type: 'string', default: '0' },
        cluster: { type: 'boolean', default: false },
        sentinel: { type: 'boolean', default: false },
        upgrade: { type: 'string' },
        transport: { type: 'string', default: 'redis' },
      },
    }).values
  } catch (error) {
    console.error(error instanceof Error ? error.message : error)
    process.exit(1)
  }
}

function chosenFiles(): string[] {
  const { only, all, cluster, sentinel } = values
  if (cluster) return [onCluster]
  if (sentinel) return [onSentinels]
  if (values.upgrade !== undefined) return [upgrade]
  if (all) return [...new Set([...faults.flatMap(({ tests }) => tests), mixed])]
  if (only === undefined) return [mixed]
  const meant = faults.filter(({ name }, i) => String(i + 1) === only || name.toLowerCase().includes(only.toLowerCase()))
  const found = [...new Set(meant.flatMap(({ tests }) => tests))]
  if (found.length > 0) return found
  console.error(`No test of a fault is named ${only}. There are:\n${faults.map(({ name }, i) => `  ${i + 1} ${name}`).join('\n')}`)
  process.exit(1)
}

function runTests(): number {
  const vitest = join(dirname(fileURLToPath(import.meta.resolve('vitest/package.json'))), 'vitest.mjs')
  const settings = { seed, runs: Number(values.runs), soakMinutes: Number(values.soak), upgradeFrom: values.upgrade ?? '' }
  const { status } = spawnSync(
    process.execPath,
    [vitest, 'run', '--project', 'platform', '--project', 'faults', '--project', 'slow', '--maxWorkers=1', ...files],
    {
      env: { ...process.env, ...toEnvironment(settings), RIVULET_TRANSPORT: values.transport },
      stdio: 'inherit',
    },
  )
  return status ?? 1
}
