/**
 * Which package and which folder may import which. The tables are the design; the functions keep code from going around it. Pure: a tree goes in,
 * sentences about what is wrong come out, in the order of the files.
 *
 * Examples import only what a newcomer would. A test (`*.test.ts`), and a file outside a workspace's `src/`, is an onlooker: it may import every package,
 * `test/support`, `scripts` and the root's dependencies, but of a package only its public entries.
 */
import { isBuiltin } from 'node:module'
import { posix } from 'node:path'
import { type Cycle, cyclesIn } from './import-cycles.ts'
import { factsOf, type Source } from './source-facts.ts'

export interface Workspace {
  /** `packages/broker` */
  folder: string
  /** `@rivulet/broker` */
  name: string
  /** What others may import of it: `.`, `./react`. */
  entries: string[]
  dependencies: string[]
}

export interface Tree {
  workspaces: Workspace[]
  rootDependencies: string[]
  sources: Source[]
}

export const everyPackage = ['protocol', 'contract', 'runtime', 'broker', 'agent', 'worker', 'client', 'engines', 'narrator', 'views'].map(
  name => `packages/${name}`,
)

/** Arrows of the design: each folder, and the folders that it may know. */
export const mayKnow: Record<string, string[]> = {
  'packages/protocol': [],
  'packages/runtime': [],
  'packages/broker': ['packages/protocol', 'packages/contract', 'packages/runtime'],
  'packages/agent': ['packages/protocol', 'packages/runtime'],
  'packages/client': ['packages/protocol', 'packages/contract'],
  'packages/contract': ['packages/protocol'],
  'packages/engines': [],
  'packages/narrator': ['packages/protocol'],
  'packages/views': ['packages/protocol'],
  // For `turn.run`: the loop stays free of the platform, and an agent needs one import.
  'packages/worker': ['packages/protocol', 'packages/contract', 'packages/runtime', 'packages/broker', 'packages/agent'],
  'apps/api': ['packages/protocol', 'packages/runtime', 'packages/broker', 'packages/contract', 'packages/narrator', 'packages/views'],
  'apps/agents': ['packages/protocol', 'packages/runtime', 'packages/worker', 'packages/agent'],
  'apps/console': ['packages/client'],
  'apps/cli': [...everyPackage, 'apps/api', 'apps/agents', 'apps/console'],
  'test/sdks': [],
  bench: [],
  examples: ['packages/worker', 'packages/agent', 'packages/views'],
}

/**
 * The rooms of the API: each folder of `apps/api/src`, and the folders beside it that it may import. `turns` and `stream` never import each other, so
 * that a reader of one needs only the log, the store and the telemetry.
 */
export const rooms: Record<string, string[]> = {
  prices: [],
  store: [],
  telemetry: ['store'],
  log: ['store'],
  access: ['store'],
  files: ['store'],
  turns: ['store', 'telemetry', 'log', 'files'],
  stream: ['store', 'telemetry', 'log'],
  feed: ['store', 'telemetry', 'stream'],
  http: ['store', 'telemetry', 'log', 'access', 'files', 'turns', 'stream', 'feed'],
  protocols: ['store', 'log', 'access', 'stream', 'http'],
}
export const apiSource = 'apps/api/src'

/**
 * The files beside the rooms, and what they may import: rooms, and each other. Every room may import `config.ts`, so a room that it imports is a part
 * of every room; the others connect the rooms, and no room may import them.
 */
const besideRooms: Record<string, string[]> = {
  'config.ts': ['prices'],
  'api.ts': ['config.ts', ...Object.keys(rooms)],
  'main.ts': ['api.ts', 'config.ts', 'telemetry', 'store'],
}

// These also run in browsers. The tests of an SDK need a server to talk to; those of the protocol and of the runtime need nothing.
const withoutNode = [
  'packages/protocol',
  'packages/runtime',
  'packages/agent',
  'packages/client',
  'packages/contract',
  'packages/narrator',
  'packages/views',
]
const withoutNodeEvenInTests = ['packages/protocol', 'packages/runtime']

const sameFolder = 'files of one folder import each other by relative name'

const isEnvironmentFile = (path: string) => /^apps\/.+\/(main|config|environment)\.tsx?$/.test(path)

export function violationsIn(tree: Tree): string[] {
  return [
    ...tree.workspaces.filter(({ folder }) => !mayKnow[folder]).map(({ folder }) => `${folder} has no row in the table of imports`),
    ...tree.sources.flatMap(source => violationsOf(source, tree)),
    ...cyclesIn(tree.sources).map(cycleSentence),
  ]
}

function violationsOf(source: Source, tree: Tree): string[] {
  const { imports, readsEnvironment } = factsOf(source)
  const home = tree.workspaces.find(({ folder }) => isInside(source.path, folder)) ?? null
  const isOnlooker = !home || isTest(source.path) || !isInside(source.path, `${home.folder}/src`)

  const wrong = imports.flatMap(specifier => {
    const reason = whyNot(specifier)
    return reason ? [`${source.path} imports ${specifier}: ${reason}`] : []
  })
  if (readsEnvironment && !isOnlooker && !isEnvironmentFile(source.path)) {
    wrong.push(`${source.path} reads the environment: only main.ts, config.ts and environment.ts of an app may`)
  }
  return wrong

  function whyNot(specifier: string): string | null {
    if (isBuiltin(specifier)) return whyNotBuiltin()
    if (specifier.startsWith('.')) return whyNotFile(posix.join(posix.dirname(source.path), specifier))
    if (/^[#/]|^\w+:/.test(specifier)) return sameFolder
    const name = packageNameOf(specifier)
    const target = tree.workspaces.find(workspace => workspace.name === name)
    return target ? whyNotWorkspace(target, specifier) : whyNotDependency(name)
  }

  function whyNotBuiltin(): string | null {
    if (!home || !withoutNode.includes(home.folder)) return null
    if (isOnlooker && !withoutNodeEvenInTests.includes(home.folder)) return null
    return `${home.folder} runs without Node`
  }

  function whyNotFile(path: string): string | null {
    if (isInside(source.path, 'examples') && !isInside(path, 'examples')) return 'a relative import stays inside examples'
    const closed = whyNotRoom(path)
    if (closed) return closed
    const owner = tree.workspaces.find(({ folder }) => isInside(path, folder)) ?? null
    if (owner === home || (isOnlooker && ['test/support', 'scripts'].some(shared => isInside(path, shared)))) return null
    return home ? `a relative import stays inside ${home.folder}` : 'a package is imported by its name'
  }

  function whyNotRoom(path: string): string | null {
    const [from, to] = [placeOf(source.path), placeOf(path)]
    if (!from || !to || from === to || isTest(source.path)) return null
    const isAllowed = rooms[from] ? to === 'config.ts' || rooms[from].includes(to) : besideRooms[from]?.includes(to)
    return isAllowed ? null : `${from} may not import ${to}`
  }

  function whyNotWorkspace(target: Workspace, specifier: string): string | null {
    const entry = `.${specifier.slice(target.name.length)}`
    if (!target.entries.includes(entry)) return `it goes past what ${target.folder}/package.json exports`
    if (isInside(source.path, 'examples') && !mayKnow.examples?.includes(target.folder)) return `examples may not know ${target.folder}`
    if (!home) return null
    if (home === target) return sameFolder
    if (isOnlooker && everyPackage.includes(target.folder)) return null
    if (!mayKnow[home.folder]?.includes(target.folder)) return `${home.folder} may not know ${target.folder}`
    return whyNotDependency(target.name)
  }

  function whyNotDependency(name: string): string | null {
    if (home?.dependencies.includes(name)) return null
    if (isOnlooker && tree.rootDependencies.includes(name)) return null
    return `${home?.folder ?? 'the root'} does not declare ${name} in its package.json`
  }
}

/** The arrows between rooms that no file needs: the picture would show more than there is. */
export function unusedArrowsIn(sources: readonly Source[]): string[] {
  const used = new Set(sources.flatMap(arrowsOf))
  return Object.entries(rooms).flatMap(([from, allowed]) => allowed.map(to => `${from} → ${to}`).filter(arrow => !used.has(arrow)))
}

function arrowsOf(source: Source): string[] {
  const from = isTest(source.path) ? null : placeOf(source.path)
  if (!from) return []
  const targets = factsOf(source).imports.map(specifier => placeOf(posix.join(posix.dirname(source.path), specifier)))
  return targets.flatMap(to => (to ? [`${from} → ${to}`] : []))
}

function cycleSentence(cycle: Cycle): string {
  return `import cycle: ${[...cycle, cycle[0]].join(' → ')}`
}

/** The room of a file of the API, or the name of a file beside the rooms; null for every other file. */
function placeOf(path: string): string | null {
  return isInside(path, apiSource) ? (path.slice(apiSource.length + 1).split('/')[0] ?? null) : null
}

function isTest(path: string): boolean {
  return /\.test\.tsx?$/.test(path)
}

function isInside(path: string, folder: string): boolean {
  return path.startsWith(`${folder}/`)
}

function packageNameOf(specifier: string): string {
  return specifier
    .split('/')
    .slice(0, specifier.startsWith('@') ? 2 : 1)
    .join('/')
}
