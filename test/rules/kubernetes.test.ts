/**
 * The manifests of deploy/kubernetes, rendered, against the schemas of Kubernetes 1.30, KEDA and the Prometheus operator: types, needed fields, and no
 * field that there is not. The schemas are those of the published types (kubernetes-types, @kubernetes-models), without their texts.
 */
import { execFileSync, spawn } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { fileURLToPath } from 'node:url'
import { variables as workerVariables } from '@rivulet/agents/config'
import { variables as apiVariables } from '@rivulet/api/config'
import { Ajv } from 'ajv'
import { describe, expect, onTestFinished, test } from 'vitest'
import schemas from '../support/texts/kubernetes-schemas.json' with { type: 'json' }
import { type Manifest, parseManifests, renderKustomization } from '../support/texts/kustomize.ts'
import { readText } from './repository.ts'

type Container = {
  name: string
  image: string
  env?: { name: string; value?: string }[]
  envFrom?: { secretRef: { name: string } }[]
}
type Workload = Manifest & { spec: { template: { spec: { containers: Container[]; terminationGracePeriodSeconds?: number } } } }

const root = fileURLToPath(new URL('../../', import.meta.url))
const manifests = [
  ...renderKustomization(`${root}deploy/kubernetes/overlays/production`),
  ...parseManifests(readText('deploy/kubernetes/secrets.example.yaml')),
  ...parseManifests(execFileSync('sh', [`${root}deploy/kubernetes/monitoring.sh`], { encoding: 'utf8' })),
]
const ajv = new Ajv({ strict: false, allErrors: true })
const named = manifests.map(manifest => [`${manifest.kind} ${manifest.metadata.name}`, manifest] as const)

describe('the manifests of Kubernetes', () => {
  test.each(named)('%s fits its schema', (_, manifest) => {
    const schema = (schemas.kinds as Record<string, object>)[`${manifest.apiVersion} ${manifest.kind}`]
    expect(schema, `${manifest.apiVersion} ${manifest.kind}`).toBeDefined()
    const validate = ajv.compile({ ...schema, $defs: schemas.$defs })
    expect(validate(manifest) ? [] : validate.errors?.map(({ instancePath, message, params }) => [instancePath, message, params])).toEqual(
      [],
    )
  })

  test('a field that Kubernetes does not have is found', () => {
    const [deployment] = workloads()
    const validate = ajv.compile({ ...schemas.kinds['apps/v1 Deployment'], $defs: schemas.$defs })
    expect(validate({ ...deployment, spec: { ...deployment?.spec, replica: 2 } })).toBe(false)
  })

  test('set variables that the programs read, and name images that the overlay has', () => {
    const known = new Set([...Object.keys(apiVariables.shape), ...Object.keys(workerVariables.shape), 'NODE_EXTRA_CA_CERTS'])
    for (const { env = [], image } of workloads().flatMap(workload => workload.spec.template.spec.containers)) {
      expect(env.map(({ name }) => name).filter(name => !known.has(name))).toEqual([])
      expect(image).toMatch(/^registry\.example\.com\/rivulet-(api|worker):1$/)
    }
    const environments = workloads().flatMap(({ spec }) => spec.template.spec.containers.flatMap(({ envFrom = [] }) => envFrom))
    for (const { secretRef } of environments) {
      const secret = manifests.find(({ kind, metadata }) => kind === 'Secret' && metadata.name === secretRef.name)
      expect(
        Object.keys((secret?.stringData as object | undefined) ?? { [secretRef.name]: 'missing' }).filter(name => !known.has(name)),
      ).toEqual([])
    }
  })

  test('let a worker drain before it is killed, and scale by the turns that one runs at a time', () => {
    const worker = workloads().find(({ metadata }) => metadata.name === 'rivulet-worker-assistant')
    const { containers = [], terminationGracePeriodSeconds = 30 } = worker?.spec.template.spec ?? {}
    const settingOf = (name: string) => containers[0]?.env?.find(variable => variable.name === name)?.value
    expect(terminationGracePeriodSeconds * 1_000).toBeGreaterThanOrEqual(Number(settingOf('WORKER_DRAIN_MS')) + 10_000)
    const scaled = manifests.find(({ kind }) => kind === 'ScaledObject') as
      | { spec: { triggers: { metadata: { threshold: string } }[] } }
      | undefined
    expect(scaled?.spec.triggers[0]?.metadata.threshold).toBe(settingOf('WORKER_CONCURRENCY'))
  })

  test('lead workers to the API over TLS, and give them the authority of its certificate without its key', () => {
    const settingsOf = (name: string) => {
      const { env = [] } = workloads().find(({ metadata }) => metadata.name === name)?.spec.template.spec.containers[0] ?? {}
      return Object.fromEntries(env.map(({ name, value }) => [name, value]))
    }
    const { RIVULET_URL, NODE_EXTRA_CA_CERTS } = settingsOf('rivulet-worker-assistant')
    expect([RIVULET_URL, NODE_EXTRA_CA_CERTS]).toEqual(['https://rivulet-internal:4001', '/tls/ca.crt'])
    expect(settingsOf('rivulet-api')).toMatchObject({ INTERNAL_TLS_CERT: '/tls/tls.crt', INTERNAL_TLS_KEY: '/tls/tls.key' })
    const worker = workloads().find(({ metadata }) => metadata.name === 'rivulet-worker-assistant')
    expect(worker?.spec.template.spec).toMatchObject({
      volumes: [{ secret: { secretName: 'rivulet-internal-tls', items: [{ key: 'ca.crt', path: 'ca.crt' }] } }],
    })
  })

  test('let no pod open a connection that no policy lists', () => {
    type Policy = Manifest & { spec: { podSelector: { matchLabels: Record<string, string> }; policyTypes: string[]; egress?: unknown[] } }
    const policies = manifests.filter(({ kind }) => kind === 'NetworkPolicy') as Policy[]
    const closed = policies.filter(({ spec }) => spec.policyTypes.includes('Egress') && !spec.egress)
    expect(closed.map(({ spec }) => spec.podSelector.matchLabels)).toEqual([{ 'app.kubernetes.io/part-of': 'rivulet' }])
    const open = policies.flatMap(({ metadata, spec }) => (spec.egress ? [metadata.name] : []))
    expect(open.sort()).toEqual(['rivulet-api', 'rivulet-deletion-cost', 'rivulet-migrate', 'rivulet-worker'])
    expect(JSON.stringify(policies.find(({ metadata }) => metadata.name === 'rivulet-worker'))).not.toContain('5432')
  })

  test('select pods that there are', () => {
    const labels = workloads().map(
      ({ spec }) => (spec.template as unknown as Manifest & { metadata: { labels: Record<string, string> } }).metadata.labels,
    )
    const selectors = JSON.stringify(manifests).matchAll(/"(?:podSelector|selector)":\{(?:"matchLabels":)?(\{[^{}]*\})/g)
    for (const [, selector = '{}'] of selectors) {
      const wanted = Object.entries(JSON.parse(selector) as Record<string, string>)
      expect([selector, labels.some(own => wanted.every(([name, value]) => own[name] === value))]).toEqual([selector, true])
    }
  })
})

test('the pods of workers get the number of their turns as deletion cost', async () => {
  const patched: [string, unknown][] = []
  const workers = [
    { id: 'rivulet-worker-a-7d9-x2-1-0a1b2c3d', isLive: true, turns: [{}, {}] },
    { id: 'rivulet-worker-a-7d9-gone-1-0a1b2c3d', isLive: false, turns: [] },
  ]
  const server = createServer(async (request, response) => {
    if (request.method === 'PATCH') patched.push([request.url ?? '', JSON.parse(await text(request))])
    response.setHeader('content-type', 'application/json').end(JSON.stringify({ data: workers }))
  }).listen(0, '127.0.0.1')
  const folder = mkdtempSync(join(tmpdir(), 'rivulet-account-'))
  for (const name of ['token', 'namespace']) writeFileSync(join(folder, name), `${name}\n`)
  await expect.poll(() => server.listening).toBe(true)
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const env = { ...process.env, RIVULET_URL: url, KUBERNETES_URL: url, ACCOUNT_DIR: folder, EVERY_MS: '20' }
  const program = spawn(process.execPath, [`${root}deploy/kubernetes/deletion-cost/deletion-cost.mjs`], { env })
  onTestFinished(() => {
    program.kill()
    server.closeAllConnections()
    server.close()
    rmSync(folder, { recursive: true })
  })
  const cost = (turns: string) => ({ metadata: { annotations: { 'controller.kubernetes.io/pod-deletion-cost': turns } } })
  await expect.poll(() => patched).toEqual([['/api/v1/namespaces/namespace/pods/rivulet-worker-a-7d9-x2', cost('2')]])
  workers[0]?.turns.pop()
  await expect.poll(() => patched.at(-1)?.[1]).toEqual(cost('1'))
})

function workloads(): Workload[] {
  return manifests.filter(({ kind }) => kind === 'Deployment' || kind === 'Job') as Workload[]
}
