/**
 * `rivulet doctor`: reports what is installed, which engines would be used, whether they start, and whether a platform is running. Exits with 1
 * if a check fails.
 */
import type { Command } from 'commander'
import { checkUp, type Finding } from '../../checkup/checkup.ts'
import { readConfig } from '../../config.ts'
import { addConnectionOptions, connectionOf } from '../../connection.ts'
import type { Context } from '../../context.ts'
import { exitCodes } from '../../exit-code.ts'
import { cleanLine } from '../../terminal/clean-text.ts'
import { toJsonLine } from '../../terminal/json-line.ts'
import type { Style } from '../../terminal/pen.ts'

type DoctorOptions = { url?: string; key?: string; json?: boolean }

const marks: Record<Finding['verdict'], [mark: string, style: Style]> = {
  works: ['✓', 'green'],
  lacks: ['–', 'yellow'],
  fails: ['✗', 'red'],
}

export function addDoctorCommand(program: Command, context: Context): void {
  const command = program
    .command('doctor')
    .description('check what Rivulet needs and what is installed')
    .option('--json', 'print the findings as JSON')
  addConnectionOptions(command).action((options: DoctorOptions) => examine(context, options))
}

async function examine({ environment, out, exitWith }: Context, options: DoctorOptions): Promise<void> {
  const findings: Finding[] = []
  const checks = checkUp({
    ...readConfig(environment),
    path: environment.PATH,
    connection: connectionOf(options, environment),
    isConnectionGiven: options.url !== undefined || Boolean(environment.RIVULET_URL),
  })
  if (!options.json) out.status(() => 'looking')
  for await (const finding of checks) {
    findings.push(finding)
    const [mark, style] = marks[finding.verdict]
    if (!options.json) out.write(`${out.style(style, mark)} ${finding.name.padEnd(9)} ${cleanLine(finding.detail)}\n`)
  }
  out.status(null)
  const isWell = findings.every(({ verdict }) => verdict !== 'fails')
  if (options.json) out.write(toJsonLine({ isWell, findings }))
  exitWith(isWell ? exitCodes.completed : exitCodes.failed)
}
