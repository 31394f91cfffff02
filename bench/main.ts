/**
 * `npm run bench`: compares the platform with the bare limits on this machine; with several rounds, in alternating runs.
 *
 *   --peers         also measures other projects, which are installed into bench/ first
 *   --only NAME     one workload, or several separated by commas
 *   --rounds N      how often each is run, alternating, of which the median is reported; default 1
 *   --quick         a fiftieth of every load: only shows that the bench works
 *   --profile       lists the functions in which API and worker spend their time
 *   --write         writes the tables to docs/performance.md
 */
import { parseArgs } from 'node:util'
import { openFileLimit } from '../test/support/process/open-files.ts'
import { type Bench, reasonOf, type Workload, warmUp } from './bench.ts'
import { type Contestant, isAbsent, type Start, type World } from './contestant.ts'
import { limits, peers } from './contestants/index.ts'
import { startCrowd } from './crowd.ts'
import { describeMachine } from './measure/machine.ts'
import { profileTables } from './measure/profile.ts'
import { writeReport } from './measure/report.ts'
import { goalsOf, goalTable, type Judged, tableOf } from './measure/table.ts'
import { installPeers } from './peers.ts'
import { workloads } from './workloads/index.ts'
import { startWorld } from './world.ts'

/** For ten thousand viewers, and a reserve for the rest. */
const neededFiles = 11_000

const { values } = parseArgs({
  options: {
    peers: { type: 'boolean', default: false },
    only: { type: 'string' },
    rounds: { type: 'string', default: '1' },
    quick: { type: 'boolean', default: false },
    profile: { type: 'boolean', default: false },
    write: { type: 'boolean', default: false },
  },
})
const chosen = chooseWorkloads(values.only)
if (openFileLimit() < neededFiles) {
  note(
    `ulimit -n is ${openFileLimit()}, and ${neededFiles} open files are needed for ten thousand viewers: raise it, or leave out "tasks" and "viewers".`,
  )
}
const began = performance.now()
const failures: string[] = []
const { world, stop } = await startWorld({ isProfiled: values.profile })
try {
  const report = await measure(world)
  console.log(report)
  if (world.profiles) console.log(profileTables(world.profiles))
  if (values.write) writeReport(report)
} finally {
  await stop()
}

async function measure(world: World): Promise<string> {
  const machine = await describeMachine(world)
  note(machine)
  const crowd = await startCrowd()
  const contestants: Contestant[] = []
  const absent: string[] = []
  try {
    for (const start of await chooseContestants()) {
      const contestant = await start.start(world)
      if (!isAbsent(contestant)) contestants.push(contestant)
      else absent.push(`${contestant.name} is not measured: ${contestant.because}`)
    }
    const rounds = values.quick ? 1 : Number(values.rounds)
    const bench: Bench = { world, crowd, contestants, rounds, scale: values.quick ? 0.02 : 1, note: fail }
    const tables: string[] = []
    const judged: Judged[] = []
    for (const contestant of contestants) await warmUp(bench, contestant)
    for (const workload of chosen) {
      const results = await workload.run({ ...bench, note: line => fail(`${workload.name}: ${line}`) }).catch(error => {
        fail(`${workload.name} could not be measured: ${reasonOf(error)}`)
        return new Map()
      })
      tables.push(tableOf(workload, results))
      judged.push(...goalsOf(workload, results))
      note(`${minutes()} ${tables.at(-1)}\n`)
    }
    const remarks = [...absent, ...failures].map(line => `- ${line}`)
    const taken = `${rounds} ${rounds === 1 ? 'round' : 'alternating rounds, medians'}; ${minutes()} in all`
    const verdict = values.quick ? 'A quick pass: these figures only show that the bench works.' : goalTable(judged)
    return [`${machine}.\n${taken}.`, verdict, ...tables, ...(remarks.length > 0 ? [remarks.join('\n')] : [])].join('\n\n')
  } finally {
    await Promise.all([crowd.stop(), ...contestants.map(contestant => contestant.close())])
  }
}

async function chooseContestants(): Promise<Start[]> {
  if (!values.peers) return limits
  return (await installPeers()) ? [...limits, ...peers] : limits
}

function chooseWorkloads(only: string | undefined): Workload[] {
  const names = only?.split(',')
  const found = workloads.filter(({ name }) => !names || names.includes(name))
  if (!names || found.length === names.length) return found
  console.error(`--only takes: ${workloads.map(({ name }) => name).join(', ')}`)
  process.exit(1)
}

function minutes(): string {
  const seconds = Math.round((performance.now() - began) / 1_000)
  return `${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, '0')}`
}

/** Reports a failure. A bench that could not measure everything exits with 1. */
function fail(line: string): void {
  note(line)
  failures.push(line)
  process.exitCode = 1
}

/** Prints progress to stderr; the report goes to stdout. */
function note(line: string): void {
  console.error(line)
}
