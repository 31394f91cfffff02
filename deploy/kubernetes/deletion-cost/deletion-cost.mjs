// @ts-check
/**
 * Sets the deletion cost of each worker's pod to the number of turns that it runs, so that Kubernetes removes idle pods first when it scales down.
 *
 * It runs beside the workers, because agents must not have the right to change pods. A worker's id begins with its `WORKER_NAME`, which is its pod's name.
 */
import { readFileSync } from 'node:fs'

const { RIVULET_URL = '', RIVULET_KEY = '', KUBERNETES_URL = 'https://kubernetes.default.svc' } = process.env
const { ACCOUNT_DIR = '/var/run/secrets/kubernetes.io/serviceaccount', EVERY_MS = '15000' } = process.env
const annotation = 'controller.kubernetes.io/pod-deletion-cost'
/** @type {Map<string, number>} */
const costs = new Map()

for (;;) {
  await setCosts().catch(error => console.error(error instanceof Error ? error.message : error))
  await new Promise(resolve => setTimeout(resolve, Number(EVERY_MS)))
}

async function setCosts() {
  const response = await call(`${RIVULET_URL}/v1/workers`, { headers: { authorization: `Bearer ${RIVULET_KEY}` } })
  const { data } = /** @type {{ data: { id: string, isLive: boolean, turns: unknown[] }[] }} */ (await response.json())
  for (const { id, turns } of data.filter(({ isLive }) => isLive)) {
    const pod = id.split('-').slice(0, -2).join('-')
    if (costs.get(pod) === turns.length) continue
    await annotate(pod, turns.length)
    costs.set(pod, turns.length)
  }
}

/** @type {(pod: string, cost: number) => Promise<void>} */
async function annotate(pod, cost) {
  const [token, namespace] = ['token', 'namespace'].map(name => readFileSync(`${ACCOUNT_DIR}/${name}`, 'utf8').trim())
  await call(`${KUBERNETES_URL}/api/v1/namespaces/${namespace}/pods/${pod}`, {
    method: 'PATCH',
    headers: { authorization: `Bearer ${token}`, 'content-type': 'application/merge-patch+json' },
    body: JSON.stringify({ metadata: { annotations: { [annotation]: String(cost) } } }),
  })
}

/** @type {(url: string, init: RequestInit) => Promise<Response>} */
async function call(url, init) {
  const response = await fetch(url, init)
  if (!response.ok) throw new Error(`${new URL(url).pathname} returned ${response.status}`)
  return response
}
