/** What the responses of models used and cost: by day as charts, and by agent, model or key as a table. */
import type { UsageReport } from '@rivulet/client'
import { useClient } from '@rivulet/client/react'
import { useMemo } from 'react'
import { PageFrame, Table } from '../shell/elements/page-frame.tsx'
import { Choice } from '../shell/forms/choice.tsx'
import { count, money, size } from '../shell/human-units.ts'
import { usePolled } from '../shell/queries.ts'
import { useQuery } from '../shell/route.ts'
import { Chart } from './chart.tsx'
import { daySeries } from './day-series.ts'
import { type Fact, FactTiles } from './fact-tiles.tsx'

const groupings = ['model', 'agent', 'key'] as const
const groupNames: Record<(typeof groupings)[number], string> = { model: 'Model', agent: 'Agent', key: 'Key' }
const periods = ['7', '30', '90', '365']

export function UsagePage() {
  const client = useClient()
  const [chosenDays, setDays] = useQuery('days')
  const [chosenGroup, setGroup] = useQuery('by')
  const days = Number(periods.find(known => known === chosenDays) ?? 30)
  const by = groupings.find(known => known === chosenGroup) ?? 'model'
  const byDay = usePolled(['usage', 'day', days], signal => client.usage({ by: 'day', from: startOf(days) }, { signal }), 30_000)
  const grouped = usePolled(['usage', by, days], signal => client.usage({ by, from: startOf(days) }, { signal }), 30_000)
  const beside = (
    <>
      <Choice label="Group" value={by === 'model' ? null : by} none="model" options={groupings.slice(1)} onChange={setGroup} />
      <Choice
        label="Days"
        value={days === 30 ? null : String(days)}
        none="30"
        options={periods.filter(one => one !== '30')}
        onChange={setDays}
      />
    </>
  )
  return (
    <PageFrame title="Usage" state={byDay} beside={beside}>
      {byDay.value && <Days report={byDay.value} />}
      {grouped.value && <Groups name={groupNames[by]} report={grouped.value} />}
    </PageFrame>
  )
}

function Days({ report }: { report: UsageReport }) {
  const { times, input, output, cost } = useMemo(() => daySeries(report), [report])
  const { total, files } = report
  const facts: Fact[] = [
    ['Tokens', count(Math.round(total.tokens))],
    ['Cost', total.cost === null ? '–' : money(total.cost)],
    ['Responses', count(total.responses)],
    ['Turns', count(total.turns)],
  ]
  return (
    <>
      <FactTiles facts={facts} />
      {files && <p className="mt-3 text-[13px] text-soft">{filesText(files)}</p>}
      {total.unpriced > 0 && (
        <p className="mt-3 text-[13px] text-warn">
          {count(total.unpriced)} responses are of models without a price. The cost leaves them out.
        </p>
      )}
      <div className="mt-4 space-y-4">
        <Chart
          title="Tokens by day"
          isByDay
          summary={`${count(Math.round(total.tokens))} tokens in ${times.length} days`}
          times={times}
          lines={[
            { name: 'input', color: '--color-accent', values: input, isArea: true },
            { name: 'output', color: '--color-good', values: output },
          ]}
          format={value => count(Math.round(value))}
          isWhole
        />
        <Chart
          title="Cost by day"
          isByDay
          summary={total.cost === null ? 'no response has a price' : `${money(total.cost)} in ${times.length} days`}
          times={times}
          lines={[{ name: 'US dollars', color: '--color-warn', values: cost, isArea: true }]}
          format={money}
        />
      </div>
    </>
  )
}

function Groups({ name, report: { data } }: { name: string; report: UsageReport }) {
  return (
    <Table
      caption={`Usage by ${name.toLowerCase()}`}
      columns={[name, 'Turns', 'Responses', 'Input', 'Output', 'Cost']}
      empty={data.length === 0 ? 'No model was used in this time.' : null}
    >
      {data.map(({ group, turns, responses, usage: { inputTokens = 0, outputTokens = 0 }, cost }) => (
        <tr key={group ?? ''}>
          <td className="font-medium [overflow-wrap:anywhere]">{group ?? 'none'}</td>
          <td className="tabular-nums">{count(turns)}</td>
          <td className="tabular-nums">{count(responses)}</td>
          <td className="tabular-nums">{count(inputTokens)}</td>
          <td className="tabular-nums">{count(outputTokens)}</td>
          <td className="tabular-nums">{cost === null ? '–' : money(cost)}</td>
        </tr>
      ))}
    </Table>
  )
}

/** The stored files, whatever the period. */
function filesText({ count: stored, bytes, maxBytes }: NonNullable<UsageReport['files']>): string {
  const limit = maxBytes === null ? '' : ` of ${size(maxBytes)}`
  return `Stored now: ${count(stored)} ${stored === 1 ? 'file' : 'files'}, ${size(bytes)}${limit}`
}

/** The beginning of the day, in UTC, so many days ago: whole days can be compared. */
function startOf(days: number): string {
  return new Date(Date.now() - (days - 1) * 86_400_000).toISOString().slice(0, 10)
}
