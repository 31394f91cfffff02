/**
 * Renders the overlays of deploy/kubernetes as `kubectl kustomize` does, as far as they use it, because no renderer comes as a package. A field that it
 * does not know is an error, so a manifest cannot depend on what was never rendered.
 */
import { readFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { parse, parseAllDocuments } from 'yaml'

type Fields = Record<string, unknown>

export type Manifest = Fields & { apiVersion: string; kind: string; metadata: { name: string; namespace?: string } }

type Kustomization = {
  namespace?: string
  resources?: string[]
  images?: { name: string; newName: string; newTag: string }[]
  patches?: { path: string }[]
  configMapGenerator?: { name: string; files: string[] }[]
}

const known = ['apiVersion', 'kind', 'namespace', 'resources', 'images', 'patches', 'configMapGenerator', 'generatorOptions']

export function parseManifests(text: string): Manifest[] {
  return parseAllDocuments(text).map(document => {
    const [error] = document.errors
    if (error) throw error
    return document.toJS() as Manifest
  })
}

export function renderKustomization(folder: string): Manifest[] {
  const all = parse(readFileSync(join(folder, 'kustomization.yaml'), 'utf8')) as Fields
  const unknown = Object.keys(all).filter(name => !known.includes(name))
  if (unknown.length > 0) throw new Error(`${folder}: ${unknown.join(', ')} is not rendered`)
  const { namespace, resources = [], images = [], patches = [], configMapGenerator = [] } = all as Kustomization
  let manifests = resources.flatMap(path =>
    path.endsWith('.yaml') ? readManifests(join(folder, path)) : renderKustomization(join(folder, path)),
  )
  for (const { name, files } of configMapGenerator)
    manifests.push({
      ...{ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name } },
      data: Object.fromEntries(files.map(file => [basename(file), readFileSync(join(folder, file), 'utf8')])),
    })
  for (const { path } of patches) for (const patch of readManifests(join(folder, path))) manifests = apply(manifests, patch)
  return manifests.map(manifest => withNames(manifest, { namespace, images }))
}

function readManifests(path: string): Manifest[] {
  return parseManifests(readFileSync(path, 'utf8'))
}

function apply(manifests: Manifest[], patch: Manifest): Manifest[] {
  const isMeant = ({ kind, metadata }: Manifest) => kind === patch.kind && metadata.name === patch.metadata.name
  if (!manifests.some(isMeant)) throw new Error(`There is no ${patch.kind} ${patch.metadata.name} to patch`)
  return manifests.map(manifest => (isMeant(manifest) ? (merge(manifest, patch) as Manifest) : manifest))
}

/** A strategic merge: lists of named things are merged by name, new ones first; other lists are replaced. */
function merge(before: unknown, patch: unknown): unknown {
  if (isNamedList(before) && isNamedList(patch)) {
    const added = patch.filter(({ name }) => !before.some(one => one.name === name))
    return [...added, ...before.map(one => merge(one, patch.find(({ name }) => name === one.name) ?? {}))]
  }
  if (!isFields(before) || !isFields(patch)) return patch
  return { ...before, ...Object.fromEntries(Object.entries(patch).map(([name, value]) => [name, merge(before[name], value)])) }
}

function isFields(value: unknown): value is Fields {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

function isNamedList(value: unknown): value is (Fields & { name: string })[] {
  return Array.isArray(value) && value.every(item => isFields(item) && typeof item.name === 'string')
}

function withNames(
  manifest: Manifest,
  { namespace, images = [] }: Pick<Kustomization, 'images'> & { namespace: string | undefined },
): Manifest {
  const text = JSON.stringify(manifest, (key, value) => {
    const image = key === 'image' ? images.find(({ name }) => name === value) : undefined
    return image ? `${image.newName}:${image.newTag}` : value
  })
  const named = JSON.parse(text) as Manifest
  return namespace === undefined ? named : { ...named, metadata: { ...named.metadata, namespace } }
}
