/** `rivulet conform -- <command>`: tries a worker in any language against the laws of the worker protocol, on a platform of its own. */
import { type Command, InvalidArgumentError } from 'commander'
import { Bench } from '../../conform/bench.ts'
import { FaultRun } from '../../conform/faults.ts'
import { laws } from '../../conform/laws.ts'
import type { Context } from '../../context.ts'
import { exitCodes } from '../../exit-code.ts'
import { cleanText } from '../../terminal/clean-text.ts'
import { toJsonLine } from '../../terminal/json-line.ts'

type ConformOptions = { seeds: number; firstSeed: number; patience: number; json?: boolean }
type Verdict = { law: string; holds: boolean; detail: string }

export function addConformCommand(program: Command, context: Context): void {
  program
    .command('conform')
    .description('try a worker in any language against the laws of the worker protocol')
    .argument('<command...>', 'what starts the worker, after --')
    .option('--seeds <count>', 'how many runs with faults', numberFrom(0), 5)
    .option('--first-seed <number>', 'the seed of the first of them', numberFrom(0), 1)
    .option('--patience <factor>', 'multiplies every limit, for a slow machine', numberFrom(1), 1)
    .option('--json', 'print the verdicts as JSON')
    .action((command: string[], options: ConformOptions) => conform(context, command, options))
}

async function conform(context: Context, command: string[], options: ConformOptions): Promise<void> {
  const { environment, out, err } = context
  err.status(() => 'starting a platform')
  const stopping = new AbortController()
  context.onStop(() => stopping.abort())
  const { signal } = stopping
  const verdicts: Verdict[] = []
  try {
    const bench = await Bench.open({ command, environment, patience: options.patience, signal })
    await tryAll(bench).finally(() => bench.close())
  } catch (error) {
    if (!signal.aborted) throw error
    return context.exitWith(exitCodes.canceled)
  } finally {
    err.status(null)
  }
  const isConforming = verdicts.every(({ holds }) => holds)
  const broken = verdicts.filter(({ holds }) => !holds).length
  if (options.json) out.write(toJsonLine({ isConforming, laws: verdicts }))
  else out.write(isConforming ? 'The worker keeps the laws.\n' : `The worker breaks ${broken} of ${verdicts.length} laws.\n`)
  context.exitWith(isConforming ? exitCodes.completed : exitCodes.failed)

  async function tryAll(bench: Bench): Promise<void> {
    for (const law of laws) await judge(bench, law.name, () => law.try(bench))
    for (let seed = options.firstSeed; seed < options.firstSeed + options.seeds; seed += 1) {
      await bench.clear({ isBroken: true })
      await judge(bench, `faults, seed ${seed}`, () => new FaultRun(bench, seed).run())
    }
  }

  async function judge(bench: Bench, law: string, trial: () => Promise<string>): Promise<void> {
    err.status(() => law)
    const verdict = await trial().then(
      detail => ({ law, holds: true, detail }),
      (error: Error) => ({ law, holds: false, detail: error.message }),
    )
    signal.throwIfAborted()
    verdicts.push(verdict)
    const workerOutput = await bench.clear({ isBroken: !verdict.holds })
    if (!options.json) out.write(lineOf(verdict))
    if (!verdict.holds) err.write(`  The worker wrote last:\n${cleanText(workerOutput)}`)
  }

  function lineOf({ law, holds, detail }: Verdict): string {
    return `${holds ? out.style('green', '✓') : out.style('red', '✗')} ${law.padEnd(26)} ${cleanText(detail)}\n`
  }
}

function numberFrom(least: number): (value: string) => number {
  return value => {
    const number = Number(value)
    if (!Number.isInteger(number) || number < least) throw new InvalidArgumentError(`Must be a whole number from ${least}.`)
    return number
  }
}
