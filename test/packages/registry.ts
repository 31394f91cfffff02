/** A registry on this machine that has our tarballs, as if they were published. Requests for any other package are redirected to the machine's registry. */
import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { basename } from 'node:path'
import { run } from '../support/process/typed-commands.ts'

export type Registry = { url: string; close(): Promise<void> }

type Published = { name: string; version: string }

export async function startRegistry(tarballs: readonly string[]): Promise<Registry> {
  const others = (await run('npm', ['config', 'get', 'registry'], process.cwd())).trim()
  const files = new Map(tarballs.map(tarball => [`/-/${basename(tarball)}`, readFileSync(tarball)]))
  const packages = new Map<string, object>()
  const server = createServer(({ url: path = '/' }, response) => {
    const file = files.get(path)
    const described = packages.get(decodeURIComponent(path.slice(1)))
    if (file) response.end(file)
    else if (described) response.setHeader('content-type', 'application/json').end(JSON.stringify(described))
    else response.writeHead(302, { location: new URL(path, others).href }).end()
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  for (const tarball of tarballs) {
    const manifest = await manifestOf(tarball)
    packages.set(manifest.name, describe(manifest, `/-/${basename(tarball)}`))
  }
  return { url, close }

  /** What npm reads about a package before it downloads one of its versions. */
  function describe(manifest: Published, path: string): object {
    const integrity = `sha512-${createHash('sha512')
      .update(files.get(path) ?? '')
      .digest('base64')}`
    const { name, version } = manifest
    const published = { ...manifest, dist: { tarball: url + path, integrity } }
    return { name, 'dist-tags': { latest: version }, versions: { [version]: published } }
  }

  async function close(): Promise<void> {
    server.closeAllConnections()
    server.close()
    await once(server, 'close')
  }
}

async function manifestOf(tarball: string): Promise<Published> {
  return JSON.parse(await run('tar', ['-xzOf', tarball, 'package/package.json'], process.cwd()))
}
