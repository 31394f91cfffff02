/**
 * The package.json that a workspace is published with, made from the one that it has in the repository.
 *
 * In the repository a workspace exports its TypeScript sources and accepts any version of its siblings, because they are the same checkout. Published, it
 * exports JavaScript with declarations, and names ranges of versions.
 */
export type Manifest = {
  name: string
  version: string
  description?: string
  type?: string
  sideEffects?: boolean | string[]
  bin?: Record<string, string>
  exports?: string | Record<string, string>
  dependencies?: Record<string, string>
  peerDependencies?: Record<string, string>
  peerDependenciesMeta?: Record<string, { optional: boolean }>
  optionalDependencies?: Record<string, string>
}

export type RootManifest = { version: string; license: string; repository: { type: string; url: string }; engines: Record<string, string> }

/** @param folder the workspace, from the root of the repository */
export function publishedManifest(workspace: Manifest, folder: string, root: RootManifest): object {
  const { name, description, sideEffects, exports = {}, dependencies, peerDependencies, peerDependenciesMeta } = workspace
  const entries = typeof exports === 'string' ? { '.': exports } : exports
  return {
    name,
    version: root.version,
    description,
    license: root.license,
    repository: { ...root.repository, directory: folder },
    type: 'module',
    sideEffects: sideEffects ?? false,
    engines: root.engines,
    exports: Object.fromEntries(Object.entries(entries).map(([entry, source]) => [entry, publishedEntry(source)])),
    files: ['dist'],
    dependencies: publishedRanges(dependencies, root.version),
    peerDependencies,
    peerDependenciesMeta,
  }
}

/** `./src/react/index.ts` is `./dist/react/index.js`, with its declarations. Types come first, because resolvers take the first condition that holds. */
function publishedEntry(source: string): { types: string; default: string } {
  const module = source.replace(/^\.\/src\//, './dist/').replace(/\.tsx?$/, '')
  return { types: `${module}.d.ts`, default: `${module}.js` }
}

/** Siblings of the same release, and of others what is compatible with the version that was tested. */
export function publishedRanges(dependencies: Record<string, string> = {}, version: string): Record<string, string> {
  return Object.fromEntries(
    Object.entries(dependencies).map(([name, range]) => {
      if (range === '*') return [name, `^${version}`]
      return [name, /^\d/.test(range) ? `^${range}` : range]
    }),
  )
}
