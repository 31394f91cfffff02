/** `rivulet usage`: what the responses of models used, and what they cost. */
import type { UsageGrouping, UsageReport } from '@rivulet/client'
import { usageGroupings } from '@rivulet/contract/usage'
import { type Command, Option } from 'commander'
import { addConnectionOptions, connect, connectionOf } from '../connection.ts'
import type { Context } from '../context.ts'
import { cleanLine } from '../terminal/clean-text.ts'
import { toJsonLine } from '../terminal/json-line.ts'
import { formatCost, formatTokens } from '../terminal/spending.ts'
import { formatTable } from '../terminal/table.ts'

type UsageOptions = { url?: string; key?: string; json?: boolean; by: UsageGrouping; from?: string; to?: string }

export function addUsageCommand(program: Command, context: Context): void {
  const command = program
    .command('usage')
    .description('show how many tokens were used, and what they cost')
    .addOption(new Option('--by <group>', 'one line for each').choices(usageGroupings).default('day'))
    .option('--from <time>', 'since this date or time, in ISO 8601 (default: 30 days ago)')
    .option('--to <time>', 'before this date or time')
    .option('--json', 'print it as JSON')
  addConnectionOptions(command).action((options: UsageOptions) => showUsage(context, options))
}

async function showUsage({ environment, out }: Context, { url, key, json, by, from, to }: UsageOptions): Promise<void> {
  const report = await connect(connectionOf({ ...(url && { url }), ...(key && { key }) }, environment)).usage({ by, from, to })
  if (json) return out.write(toJsonLine(report))
  const rows = report.data.map(line => rowOf(line.group === null ? '–' : cleanLine(line.group), line))
  out.write(
    rows.length > 0
      ? formatTable([by, 'turns', 'responses', 'input', 'output', 'cost'], [...rows, rowOf('total', report.total)])
      : 'no usage\n',
  )
  if (report.total.unpriced > 0) out.write(`${report.total.unpriced} responses have no price: set MODEL_PRICES\n`)
}

function rowOf(name: string, { turns, responses, usage, cost }: UsageReport['total']): string[] {
  const { inputTokens = 0, outputTokens = 0 } = usage
  return [
    name,
    String(turns),
    String(responses),
    formatTokens(inputTokens),
    formatTokens(outputTokens),
    cost === null ? '–' : formatCost(cost),
  ]
}
