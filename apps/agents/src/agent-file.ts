/** Loads agents from files: a default export that is an agent or an array of agents, or agents exported by name. Other exports are ignored. */
import { existsSync } from 'node:fs'
import { resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import type { AgentDefinition } from '@rivulet/worker'
import { describeLoadFailure } from './load-failure.ts'

/** A file that gives no agents, and would give none until it changes. */
export class UnusableFile extends Error {}

/** Paths are relative to the working folder. Throws, with a sentence for people, for a file that gives no agent. */
export async function loadAgents(files: readonly string[]): Promise<AgentDefinition[]> {
  const loaded = await Promise.all(files.map(load))
  return loaded.flat()
}

async function load(file: string): Promise<AgentDefinition[]> {
  const path = resolve(file)
  if (!existsSync(path)) throw new UnusableFile(`No such file: ${file}`)
  return agentsIn(await importFile(file, path), file)
}

/** The agents that a module exports. */
export function agentsIn(module: Record<string, unknown>, file: string): AgentDefinition[] {
  const exported = Object.values(module)
  const broken = exported.some(value => Array.isArray(value) && value.some(isAgent) && !value.every(isAgent))
  if (broken) throw new UnusableFile(`${file} exports an array with an item that is not an agent`)
  const agents = new Set(exported.flat().filter(isAgent))
  if (agents.size === 0)
    throw new UnusableFile(`${file} exports no agent: write export default defineAgent(…), an array of them, or export each by name`)
  return Array.from(agents)
}

async function importFile(file: string, path: string): Promise<Record<string, unknown>> {
  try {
    return await import(pathToFileURL(path).href)
  } catch (error) {
    throw new UnusableFile(`${file} cannot be loaded: ${describeLoadFailure(path, error)}`, { cause: error })
  }
}

function isAgent(value: unknown): value is AgentDefinition {
  if (typeof value !== 'object' || value === null) return false
  return 'name' in value && typeof value.name === 'string' && 'run' in value && typeof value.run === 'function'
}
