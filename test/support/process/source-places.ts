/** Places of a bundle, as stacks name them, in the sources it was made of: for people who read what a process wrote. */
import { readFileSync } from 'node:fs'
import { SourceMap } from 'node:module'
import { resolve } from 'node:path'

const maps = new Map<string, SourceMap>()

/** Places that it cannot find stay as they are. */
export function toSources(text: string): string {
  return text.replaceAll(/(\/[^\s:()]+\/main\.cjs):(\d+):(\d+)/g, (place: string, bundle: string, line: string, column: string) => {
    try {
      const found = mapOf(bundle).findEntry(Number(line) - 1, Number(column) - 1)
      if (!('originalSource' in found)) return place
      return `${resolve(bundle, '..', found.originalSource)}:${found.originalLine + 1}:${found.originalColumn + 1}`
    } catch {
      return place
    }
  })
}

function mapOf(bundle: string): SourceMap {
  const map = maps.get(bundle) ?? new SourceMap(JSON.parse(readFileSync(`${bundle}.map`, 'utf8')))
  maps.set(bundle, map)
  return map
}
