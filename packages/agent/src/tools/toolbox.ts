/** The tools of a run, by name. */
import { RivuletError } from '@rivulet/protocol'
import type { Tool } from './tool.ts'

export type Toolbox = { get(name: string): Tool | undefined; names(): string[]; all(): readonly Tool[] }

export function createToolbox(tools: readonly Tool[]): Toolbox {
  const byName = new Map<string, Tool>()
  for (const tool of tools) {
    if (byName.has(tool.name)) throw new RivuletError('validation_failed', `Duplicate tool name: ${tool.name}`)
    byName.set(tool.name, tool)
  }
  return { get: name => byName.get(name), names: () => Array.from(byName.keys()), all: () => tools }
}
