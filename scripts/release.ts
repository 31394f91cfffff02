/**
 * `npm run release -- [version] [--dry-run | --publish]`: sets the version everywhere, heads the changelog with it, packs every public package, writes
 * the bill of materials to `dist/sbom.cdx.json`, and shows what would be published.
 *
 * With `--dry-run` the checkout is left as it was. With `--publish` the tarballs go to the registry that npm is set to. Without either, the
 * changes are left for you to commit and tag.
 */
import { execFileSync } from 'node:child_process'
import { readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { withChangelogHeading, withVersion } from './packages/release-texts.ts'
import { sbomOf } from './packages/sbom.ts'

const root = fileURLToPath(new URL('../', import.meta.url))
const options = { 'dry-run': { type: 'boolean' }, publish: { type: 'boolean' } } as const
const { values, positionals } = parseArgs({ options, allowPositionals: true })
const current: string = JSON.parse(read('package.json')).version
const version = positionals[0] ?? current
if (!/^\d+\.\d+\.\d+(-[\w.]+)?$/.test(version)) throw new Error(`${version} is not a version: write it as 1.2.3`)

const manifests = ['package.json', 'package-lock.json', ...workspaceManifests()]
const before = new Map([...manifests, 'docs/changelog.md'].map(file => [file, read(file)]))
try {
  for (const file of manifests) write(file, withVersion(read(file), version, current))
  write('docs/changelog.md', withChangelogHeading(read('docs/changelog.md'), version))
  execFileSync('npm', ['run', '--silent', 'tarballs'], { cwd: root, stdio: ['ignore', 'ignore', 'inherit'] })
  write('dist/sbom.cdx.json', sbomOf(read('package-lock.json'), version))
  const changed = [...before].flatMap(([file, text]) => (read(file) === text ? [] : [file]))
  console.log(changed.length > 0 ? `Changed for ${version}: ${changed.join(', ')}\n` : `Every file has the version ${version} already\n`)
  for (const tarball of readdirSync(join(root, 'dist/tarballs'))) publish(join('dist/tarballs', tarball))
} finally {
  if (values['dry-run']) for (const [file, text] of before) write(file, text)
}

function publish(tarball: string): void {
  const { name, files } = describe(tarball)
  const size = `${Math.ceil(statSync(join(root, tarball)).size / 1024)} kB, ${files} files`
  console.log(`${values.publish ? 'publishing' : 'would publish'} ${name} (${size}): ${tarball}`)
  if (values.publish) execFileSync('npm', ['publish', tarball, '--access', 'public'], { cwd: root, stdio: 'inherit' })
}

function describe(tarball: string): { name: string; files: number } {
  const listed = execFileSync('tar', ['-tzf', tarball], { cwd: root, encoding: 'utf8', maxBuffer: 1 << 26 })
  const manifest = execFileSync('tar', ['-xzOf', tarball, 'package/package.json'], { cwd: root, encoding: 'utf8' })
  const { name, version: packed } = JSON.parse(manifest) as { name: string; version: string }
  return { name: `${name}@${packed}`, files: listed.trim().split('\n').length }
}

function workspaceManifests(): string[] {
  return ['apps', 'packages'].flatMap(folder => readdirSync(join(root, folder)).map(name => `${folder}/${name}/package.json`))
}

function read(file: string): string {
  return readFileSync(join(root, file), 'utf8')
}

function write(file: string, text: string): void {
  writeFileSync(join(root, file), text)
}
