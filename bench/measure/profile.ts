/** CPU profiles as tables: the functions with the most self time. */
import { readdirSync, readFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { markdown } from './table.ts'

type Profile = {
  nodes: { id: number; callFrame: { functionName: string; url: string; lineNumber: number } }[]
  samples: number[]
  timeDeltas: number[]
}

const listed = 25

export function profileTables(folder: string): string {
  const files = readdirSync(folder).filter(file => file.endsWith('.cpuprofile'))
  return files
    .map(file => `### ${basename(file, '.cpuprofile')}\n\n${tableOf(JSON.parse(readFileSync(join(folder, file), 'utf8')))}`)
    .join('\n\n')
}

/** Without idle time. */
function tableOf({ nodes, samples, timeDeltas }: Profile): string {
  const names = new Map(nodes.map(({ id, callFrame }) => [id, nameOf(callFrame)]))
  const spent = new Map<string, number>()
  for (const [i, sample] of samples.entries()) {
    const name = names.get(sample) ?? ''
    if (name !== '(idle)') spent.set(name, (spent.get(name) ?? 0) + (timeDeltas[i] ?? 0))
  }
  const total = Array.from(spent.values()).reduce((sum, each) => sum + each, 0)
  const top = Array.from(spent).toSorted(([, a], [, b]) => b - a)
  const rows = top.slice(0, listed).map(([name, micros]) => [name, `${((micros / total) * 100).toFixed(1)} %`])
  return markdown([`self time, of ${(total / 1e6).toFixed(1)} s busy`, ''], rows)
}

function nameOf({ functionName, url, lineNumber }: Profile['nodes'][number]['callFrame']): string {
  const place = url && !url.startsWith('node:') ? ` (${basename(join(url, '..'))}:${lineNumber + 1})` : url ? ` (${url})` : ''
  return `${functionName || '(anonymous)'}${place}`
}
