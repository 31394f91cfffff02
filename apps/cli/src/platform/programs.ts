/** The programs that this one starts, and which of them a source file is part of. */
import { existsSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

/** The checkout or, in the published package, its folder: both have `package.json`, `migrations` and `apps/cli/template`. */
export const root = fileURLToPath(new URL('../../../../', import.meta.url))

/** Run from sources, which only a checkout has. The published package and `npm start` run bundles. */
export const isCheckout = existsSync(`${root}apps/cli/src/main.ts`)

export type Program = 'api' | 'worker'

const sources: Record<Program, string> = { api: 'apps/api/src/main.ts', worker: 'apps/agents/src/main.ts' }

/** What Node runs for a program. TypeScript needs a loader: that of a checkout, and agents of the user's. */
export function argumentsOf(program: Program, args: readonly string[] = []): string[] {
  const loader = isCheckout || args.some(file => /\.[cm]?tsx?$/.test(file)) ? ['--import', import.meta.resolve('tsx')] : []
  return [...loader, `${root}${isCheckout ? sources[program] : `dist/${program}.mjs`}`, ...args]
}

/** The module that `rivulet build` puts beside the user's agents. */
export const builtWorker = `${root}${isCheckout ? 'apps/agents/src/built-worker.ts' : 'dist/built-worker.mjs'}`

/** @param file from the repository's root */
export function programsOf(file: string): Program[] {
  if (!/\/src\/.*\.(ts|lua)$/.test(file)) return []
  if (/^(apps\/api|packages\/(views|narrator))\//.test(file)) return ['api']
  if (/^(apps\/agents|packages\/(worker|agent))\//.test(file)) return ['worker']
  return /^packages\/(protocol|contract|runtime|broker)\//.test(file) ? ['api', 'worker'] : []
}
