/**
 * What package-lock.json must be for `npm ci` to work on every machine: complete for every platform, free of any registry's address, and in
 * step with each package.json. Pure: a lock and the manifests go in, sentences about what is wrong come out.
 */
import { posix } from 'node:path'
import { isDeepStrictEqual } from 'node:util'

export interface Lock {
  /** By path: `''` is the root, `packages/broker` a workspace, `node_modules/zod` an installed package. */
  packages: Record<string, LockEntry>
}

export interface LockEntry extends Declarations {
  name?: string
  version?: string
  resolved?: string
  link?: boolean
  hasInstallScript?: boolean
}

/** The fields that a package.json and its entry in the lock share. */
interface Declarations {
  workspaces?: string[]
  dependencies?: Record<string, string>
  devDependencies?: Record<string, string>
  peerDependencies?: Record<string, string>
  optionalDependencies?: Record<string, string>
}

export interface Project {
  lock: Lock
  /** By folder, as in the lock: `''` for the root's package.json. */
  manifests: Record<string, Declarations & { name: string; allowScripts?: Record<string, boolean> }>
}

export function lockViolations({ lock, manifests }: Project): string[] {
  return [...missingOptionals(lock), ...namedHosts(lock), ...unreviewedScripts({ lock, manifests }), ...staleManifests({ lock, manifests })]
}

/** npm 11 runs no install script that `allowScripts` does not allow, and warns at every install of each that it does not name. */
function unreviewedScripts({ lock: { packages }, manifests }: Project): string[] {
  const reviewed = manifests['']?.allowScripts ?? {}
  const withScripts = Object.entries(packages).filter(([, { hasInstallScript }]) => hasInstallScript)
  const names = new Set(withScripts.map(([path]) => path.split('node_modules/').at(-1) ?? ''))
  const unnamed = [...names].filter(name => !(name in reviewed))
  const allowed = Object.keys(reviewed).filter(name => reviewed[name])
  const stale = Object.keys(reviewed).filter(name => !names.has(name))
  return [
    ...unnamed.map(name => `${name} has an install script, and allowScripts does not name it`),
    ...allowed.map(name => `${name} may run its install script, and npm ci --ignore-scripts has to be enough`),
    ...stale.map(name => `allowScripts names ${name}, which has no install script`),
  ]
}

/** npm leaves a platform's package out of the lock when it could not be resolved on that day, and `npm ci` then fails, for everyone. */
function missingOptionals({ packages }: Lock): string[] {
  return Object.entries(packages).flatMap(([path, entry]) =>
    Object.entries(entry.optionalDependencies ?? {}).flatMap(([name, wanted]) => {
      const found = foldersAbove(path).map(folder => packages[posix.join(folder, 'node_modules', name)])
      const version = found.find(candidate => candidate)?.version
      if (!version) return [`${path || 'the root'} may need ${name}, which has no entry`]
      // A missing entry may be hidden by another version further up. Ranges are for npm to judge; platform packages are named exactly.
      const isExact = /^\d+\.\d+\.\d+/.test(wanted)
      return isExact && version !== wanted ? [`${path || 'the root'} may need ${name} ${wanted}, and would find ${version}`] : []
    }),
  )
}

function namedHosts({ packages }: Lock): string[] {
  return Object.entries(packages).flatMap(([path, { resolved }]) =>
    resolved && /^[\w+.-]+:\/\/[^/]/.test(resolved) ? [`${path} is tied to a host: ${resolved}`] : [],
  )
}

function staleManifests({ lock: { packages }, manifests }: Project): string[] {
  const wrong = Object.keys(packages)
    .filter(path => !path.includes('node_modules') && !manifests[path])
    .map(path => `${path} is in the lock, and no longer a workspace`)
  for (const [folder, manifest] of Object.entries(manifests)) {
    const file = posix.join(folder, 'package.json')
    const entry = packages[folder]
    if (!entry) wrong.push(`${file} is not in the lock`)
    else if (entry.name !== manifest.name) wrong.push(`${file} has another name in the lock: ${entry.name}`)
    else if (!isDeepStrictEqual(declarationsOf(entry), declarationsOf(manifest))) wrong.push(`${file} declares other things than the lock`)
    const link = packages[`node_modules/${manifest.name}`]
    if (folder !== '' && entry && (!link?.link || link.resolved !== folder)) wrong.push(`${manifest.name} is not linked to ${folder}`)
  }
  return wrong
}

/** The folder itself and those around it, in the order in which Node looks for `node_modules` in them. */
function foldersAbove(path: string): string[] {
  const parts = path === '' ? [] : path.split('/')
  const folders = parts.map((_, index) => parts.slice(0, parts.length - index).join('/'))
  return [...folders.filter(folder => posix.basename(folder) !== 'node_modules'), '']
}

/** npm writes no empty table, and a name that is optional is in no other one. */
function declarationsOf(from: Declarations): Required<Declarations> {
  const optionalDependencies = from.optionalDependencies ?? {}
  const isRequired = ([name]: [string, string]) => !(name in optionalDependencies)
  return {
    workspaces: from.workspaces ?? [],
    dependencies: Object.fromEntries(Object.entries(from.dependencies ?? {}).filter(isRequired)),
    devDependencies: from.devDependencies ?? {},
    peerDependencies: from.peerDependencies ?? {},
    optionalDependencies,
  }
}
