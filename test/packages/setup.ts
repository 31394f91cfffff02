/** Packs every public package, and installs the tarballs into an empty folder without a clone beside it, once for all files of this project. */
import { chmodSync, cpSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { TestProject } from 'vitest/node'
import { installPackages, packagesOf, packTarballs } from '../support/tarballs.ts'

declare module 'vitest' {
  interface ProvidedContext {
    /** The folder into which the tarballs are installed, with the files of `test/packages/consumer`. */
    consumer: string
    tarballs: string[]
  }
}

const checkout = fileURLToPath(new URL('../../', import.meta.url))
const root = JSON.parse(readFileSync(join(checkout, 'package.json'), 'utf8'))
/** An SDK that is years older than the OpenTelemetry API of this checkout. */
const oldSdk = ['@opentelemetry/api@1.4.1', '@opentelemetry/sdk-trace-node@1.13.0', '@opentelemetry/exporter-trace-otlp-http@0.39.1']

export default async function setup(project: TestProject): Promise<() => void> {
  const folder = mkdtempSync(join(tmpdir(), 'rivulet-packages-'))
  // Postgres runs as another user when this is root.
  chmodSync(folder, 0o755)
  const tarballs = await packTarballs(checkout)
  cpSync(fileURLToPath(new URL('./consumer/', import.meta.url)), folder, { recursive: true })
  const tools = packagesOf(checkout, 'typescript', '@types/node', '@types/react', '@types/react-dom', 'react', 'react-dom', 'vite', 'zod')
  // Vite's bundler in the version that this checkout builds its console with, because a newer one may lack the part for this machine.
  const overrides = { rolldown: root.overrides.rolldown }
  await installPackages(folder, [...tarballs, ...tools, ...oldSdk], { overrides })
  project.provide('consumer', folder)
  project.provide('tarballs', tarballs)
  return () => rmSync(folder, { recursive: true, force: true })
}
