/** The programs that this one starts, and which of them a source file is part of. */
import { fileURLToPath } from 'node:url'

export const root = fileURLToPath(new URL('../../../../', import.meta.url))

export type Program = 'api' | 'worker'

export const programs: Record<Program, string> = { api: `${root}apps/api/src/main.ts`, worker: `${root}apps/agents/src/main.ts` }

/** @param file from the repository's root */
export function programsOf(file: string): Program[] {
  if (!/\/src\/.*\.(ts|lua)$/.test(file)) return []
  if (/^(apps\/api|packages\/views)\//.test(file)) return ['api']
  if (/^(apps\/agents|packages\/(worker|agent))\//.test(file)) return ['worker']
  return /^packages\/(protocol|runtime|broker)\//.test(file) ? ['api', 'worker'] : []
}
