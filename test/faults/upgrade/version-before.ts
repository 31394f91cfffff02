/**
 * The version before this one, as its users have it: its packages, packed by its own command and installed into an empty folder, and a worker that
 * `rivulet build` made of agent files that import them. Its sources are gone when this is done, so nothing of it can run from them.
 */
import { execFileSync } from 'node:child_process'
import { cpSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { Installation } from '../../support/platform/platform-process.ts'
import { run } from '../../support/process/typed-commands.ts'
import { installPackages, packagesOf, packTarballs } from '../../support/tarballs.ts'

export type VersionBefore = Installation & { migrate(databaseUrl: string): Promise<unknown> }

const home = fileURLToPath(new URL('../../..', import.meta.url))

const agents = `import { journaled } from './journaled.ts'
import { createScripted } from './scripted/scripted.ts'
export default journaled(createScripted())
`

/** The newest release that is part of our history, else the commit before the last but one that added a migration, else null. */
export function findVersionBefore(): string | null {
  try {
    const [tag] = git('tag', '--list', 'v*', '--merged', 'HEAD', '--no-contains', 'HEAD', '--sort=-creatordate')
    if (tag) return tag
    const [, added] = git('log', '--diff-filter=A', '--format=%H', '--', 'migrations/*.sql')
    return git('rev-parse', '--short', `${added}~1`)[0] ?? null
  } catch {
    return null
  }
}

/**
 * @param version a tag or a commit of this repository
 * @param folder an empty one
 */
export async function installVersion(version: string, folder: string): Promise<VersionBefore> {
  const sources = mkdtempSync(join(tmpdir(), 'rivulet-sources-'))
  try {
    await run('sh', ['-c', 'git archive "$1" | tar -x -C "$2"', 'sh', version, sources], home)
    await installPackages(folder, [...(await packTarballs(sources)), ...packagesOf(sources, 'zod')])
    cpSync(join(sources, 'apps/agents/src/examples/scripted'), join(folder, 'scripted'), { recursive: true })
  } finally {
    rmSync(sources, { recursive: true })
  }
  cpSync(fileURLToPath(new URL('./journaled.ts', import.meta.url)), join(folder, 'journaled.ts'))
  writeFileSync(join(folder, 'agents.ts'), agents)
  await run('npx', ['rivulet', 'build', 'agents.ts'], folder)
  const [api, worker] = [join(folder, 'node_modules/rivulet/main.mjs'), join(folder, 'dist/main.mjs')]
  return {
    folder,
    programs: { api: ['--enable-source-maps', api], worker: ['--enable-source-maps', worker] },
    migrate: databaseUrl => run(process.execPath, [api, 'migrate'], folder, { DATABASE_URL: databaseUrl }),
  }
}

function git(...args: string[]): string[] {
  const output = execFileSync('git', args, { cwd: home, encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] })
  return output.split('\n').filter(Boolean)
}
