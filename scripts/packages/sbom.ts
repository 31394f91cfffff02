/**
 * The software bill of materials of a release, as CycloneDX JSON: every package of others that our packages contain or install, with its version,
 * licence and hash as in package-lock.json. Packages that only our tests and checks need are not in it. Pure: text in, text out.
 * `npm sbom` cannot write it, because it fails on an optional package whose dependencies are bundled.
 */

type LockedPackage = {
  version?: string
  integrity?: string
  license?: string
  dev?: boolean
  /** Also of our tests: of ours if it is optional there. */
  devOptional?: boolean
  optional?: boolean
  link?: boolean
}

export function sbomOf(lock: string, version: string): string {
  const { packages } = JSON.parse(lock) as { packages: Record<string, LockedPackage> }
  const installed = Object.entries(packages).filter(([folder, { dev, link }]) => folder.includes('node_modules/') && !dev && !link)
  const components = installed.map(([folder, locked]) => componentOf(folder.split('node_modules/').at(-1) ?? '', locked))
  const byUrl = new Map(components.map(component => [component.purl, component]))
  const bom = {
    ...{ bomFormat: 'CycloneDX', specVersion: '1.6', version: 1 },
    metadata: { component: { type: 'application', 'bom-ref': purlOf('rivulet', version), name: 'rivulet', version } },
    components: [...byUrl.values()].sort((a, b) => (a.purl < b.purl ? -1 : 1)),
  }
  return `${JSON.stringify(bom, null, 2)}\n`
}

function componentOf(name: string, { version, integrity, license, optional, devOptional }: LockedPackage) {
  const [algorithm = '', hash = ''] = integrity?.split('-') ?? []
  return {
    ...{ type: 'library', 'bom-ref': purlOf(name, version), name, version },
    scope: optional || devOptional ? 'optional' : 'required',
    ...(hash && { hashes: [{ alg: algorithm.replace('sha', 'SHA-'), content: Buffer.from(hash, 'base64').toString('hex') }] }),
    ...(license && { licenses: [{ expression: license }] }),
    purl: purlOf(name, version),
  }
}

/** The address of a package, as in the specification of package URLs. */
function purlOf(name: string, version = ''): string {
  return `pkg:npm/${name.replace('@', '%40')}@${version}`
}
