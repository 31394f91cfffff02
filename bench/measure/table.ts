/** Results as Markdown: a table for each workload, and one of the goals. */
import type { Column, Goal, Results, Workload } from '../bench.ts'

export function tableOf({ title, columns }: Workload, results: Results): string {
  const used = columns.filter(({ key }) => Array.from(results.values()).some(figures => figures[key] !== undefined))
  const rows = Array.from(results, ([name, figures]) => [name, ...used.map(column => cell(column, figures[column.key]))])
  return `### ${title}\n\n${markdown(['', ...used.map(column => column.title)], rows)}`
}

export type Judged = { workload: string; goal: Goal; value: number | null }

export function goalsOf({ name, goals }: Workload, results: Results): Judged[] {
  return goals.map(goal => ({ workload: name, goal, value: goal.value(results) }))
}

export function goalTable(judged: readonly Judged[]): string {
  const rows = judged.map(({ workload, goal, value }) => [
    workload,
    goal.text,
    'atMost' in goal ? `≤ ${goal.atMost}` : `≥ ${goal.atLeast}`,
    value === null ? '–' : figure(value, 2),
    value === null ? 'not measured' : isMet(goal, value) ? 'met' : '**missed**',
  ])
  return markdown(['workload', 'goal', 'bound', 'measured', ''], rows)
}

export function isMet(goal: Goal, value: number): boolean {
  return 'atMost' in goal ? value <= goal.atMost : value >= goal.atLeast
}

function cell({ digits = 0 }: Column, value: number | undefined): string {
  return value === undefined || Number.isNaN(value) ? '–' : figure(value, digits)
}

function figure(value: number, digits: number): string {
  return value.toLocaleString('en-US', { minimumFractionDigits: digits, maximumFractionDigits: digits })
}

export function markdown(head: string[], rows: string[][]): string {
  const lines = [head, head.map((_, column) => (column === 0 ? '---' : '---:')), ...rows]
  return lines.map(cells => `| ${cells.join(' | ')} |`).join('\n')
}
