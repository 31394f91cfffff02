/** The dashboard, the alerts and docs/operations.md speak of metrics that there are, under their names and labels, and leave none out. */
import { createMetrics } from '@rivulet/api/metrics'
import { describe, expect, test } from 'vitest'
import { parse } from 'yaml'
import { type DeclaredMetric, declaredMetrics } from '../../scripts/generated/metrics.ts'
import { readText } from './repository.ts'

const declared = declaredMetrics()
const ours = declared.filter(({ name }) => name.startsWith('rivulet_'))

const page = readText('docs/operations.md')
const dashboard = JSON.parse(readText('ops/grafana/rivulet.json')) as { title: string; panels: Panel[] }
const alerts = (parse(readText('ops/prometheus/alerts.yml')) as { groups: { rules: Alert[] }[] }).groups.flatMap(({ rules }) => rules)

type Panel = {
  id: number
  type: string
  title: string
  description?: string
  fieldConfig?: { defaults: { unit?: string } }
  targets?: { expr: string; legendFormat: string }[]
}
type Alert = { alert: string; expr: string; for?: string; labels: { severity: string }; annotations: { summary: string } }

describe('the metrics', () => {
  test('are named as Prometheus wants it, and each says what it is in a sentence', () => {
    for (const { name, type, help } of ours) {
      expect(name.endsWith('_total'), name).toBe(type === 'counter')
      if (type === 'histogram') expect(name).toMatch(/_(seconds|attempts)$/)
      expect(help, name).toMatch(/^[A-Z].{10,}[^.]$/)
    }
  })
})

describe('the dashboard', () => {
  const panels = dashboard.panels.filter(({ type }) => type !== 'row')
  const expressions = panels.flatMap(({ targets = [] }) => targets.map(({ expr }) => expr))

  test('has panels that say what they show, in which unit, and why one looks at them', () => {
    expect(panels.length).toBeGreaterThan(20)
    expect(new Set(dashboard.panels.map(({ id }) => id)).size).toBe(dashboard.panels.length)
    for (const { title, description, fieldConfig, targets } of panels) {
      expect(title).toMatch(/\w/)
      expect(description ?? '', title).toMatch(/\w.{20,}\.$/)
      expect(fieldConfig?.defaults.unit ?? '', title).toMatch(/\w/)
      expect(targets ?? [], title).not.toEqual([])
    }
  })

  test.each(expressions)('asks for what there is: %s', expression => {
    expect(faultsOf(expression)).toEqual([])
  })

  test('leaves no metric of ours out', () => {
    const shown = expressions.flatMap(namesIn)
    expect(ours.map(({ name }) => name).filter(name => !shown.includes(name))).toEqual([])
  })
})

describe('the alerts', () => {
  test.each(alerts.map(({ alert, ...rest }) => [alert, rest] as const))(
    '%s asks for what there is, and says how bad it is',
    (_, { expr, labels, annotations }) => {
      expect(faultsOf(expr)).toEqual([])
      expect(labels.severity).toMatch(/^(page|ticket)$/)
      expect(annotations.summary).toMatch(/\w/)
    },
  )

  test('see every rise: what they count is there from the start, at nothing', async () => {
    const told = await createMetrics().registry.metrics()
    const counted = alerts.flatMap(({ expr }) => Array.from(expr.matchAll(/increase\((\w+)(\{[^}]*\})?/g)))
    expect(counted.length).toBeGreaterThan(4)
    for (const [, name = '', labels = '{'] of counted) expect(told).toMatch(new RegExp(`^${name}( 0|\\${labels}.* 0)$`, 'm'))
  })

  test('are those that docs/operations.md explains', () => {
    expect(rowsOf('Alerts').map(([name = '']) => name)).toEqual(alerts.map(({ alert }) => `\`${alert}\``))
  })
})

test('a metric or a label that is not there would be noticed', () => {
  expect(faultsOf('rate(rivulet_nothing_total[5m])')).toEqual(['rivulet_nothing_total does not exist'])
  expect(faultsOf('sum(rivulet_viewers{agent="a"})')).toEqual(['rivulet_viewers has no label agent'])
  expect(faultsOf('sum by (missing) (rivulet_viewers)')).toEqual(['no metric here has the label missing'])
  expect(faultsOf('rivulet_viewers_bucket')).toEqual(['rivulet_viewers_bucket does not exist'])
  expect(faultsOf('sum(rivulet_viewers')).toEqual(['brackets do not match'])
})

/** What is wrong with an expression, as far as that shows without a Prometheus. */
function faultsOf(expression: string): string[] {
  const found = [...expression.matchAll(/\b((?:rivulet|nodejs|process)_\w+)(?:\{([^}]*)\})?/g)]
  const unknown = found.flatMap(([, series = '']) => (metricOf(series) ? [] : [`${series} does not exist`]))
  const mislabeled = found.flatMap(([, series = '', selector = '']) => {
    const known = metricOf(series)
    const labels = Array.from(selector.matchAll(/(\w+)(?==|!=)/g), ([label]) => label)
    return known ? labels.filter(label => !labelsOf(known).includes(label)).map(label => `${series} has no label ${label}`) : []
  })
  const grouped = Array.from(expression.matchAll(/\bby \(([^)]*)\)/g), ([, list = '']) => list.split(/, */)).flat()
  const available = found.flatMap(([, series = '']) => labelsOf(metricOf(series)))
  const strange =
    unknown.length > 0 ? [] : grouped.filter(label => !available.includes(label)).map(label => `no metric here has the label ${label}`)
  const isBalanced = ['()', '{}', '[]'].every(([open = '', close = '']) => expression.split(open).length === expression.split(close).length)
  return [...unknown, ...mislabeled, ...strange, ...(isBalanced ? [] : ['brackets do not match'])]
}

function namesIn(expression: string): string[] {
  return Array.from(expression.matchAll(/\brivulet_\w+/g), ([series]) => metricOf(series)?.name ?? '')
}

/** A histogram has its series under three names, and under none of its own. */
function metricOf(series: string): DeclaredMetric | undefined {
  const base = series.replace(/_(bucket|sum|count)$/, '')
  return declared.find(({ name, type }) => (type === 'histogram' ? name !== series && name === base : name === series))
}

/** `instance` and `job` are Prometheus' own. */
function labelsOf(metric: DeclaredMetric | undefined): string[] {
  return metric ? [...metric.labelNames, 'instance', 'job', ...(metric.type === 'histogram' ? ['le'] : [])] : []
}

/** The rows of the first table under a heading. */
function rowsOf(heading: string): string[][] {
  const [, section = ''] = page.split(`\n## ${heading}\n`)
  const [body = ''] = section.split('\n## ')
  const table = body.split(/\n\n+/).find(block => block.trimStart().startsWith('|')) ?? ''
  const lines = table.trim().split('\n').slice(2)
  return lines.map(line =>
    line
      .split('|')
      .slice(1, -1)
      .map(cell => cell.trim()),
  )
}
