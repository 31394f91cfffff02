/**
 * Lets a test see what a process holds, without what it has merely not thrown away yet: a process that is started with these options collects
 * its garbage on SIGUSR2.
 */
import { until } from './until.ts'

const onSignal = "process.on('SIGUSR2', () => { globalThis.gc(); globalThis.gc() })"

export const collectingOptions = { NODE_OPTIONS: `--expose-gc --import data:text/javascript,${encodeURIComponent(onSignal)}` }

/** Heap and buffers of an API process after a collection. */
export async function heldMemory(api: { url: string; pid: number }): Promise<number> {
  const before = await collections(api)
  process.kill(api.pid, 'SIGUSR2')
  await until('garbage is collected', async () => (await collections(api)) > before)
  const metrics = await read(api)
  return gauge(metrics, 'nodejs_heap_size_used_bytes') + gauge(metrics, 'nodejs_external_memory_bytes')
}

async function collections(api: { url: string }): Promise<number> {
  return gauge(await read(api), 'nodejs_gc_duration_seconds_count{kind="major"}')
}

async function read({ url }: { url: string }): Promise<string> {
  return (await fetch(`${url}/metrics`)).text()
}

function gauge(metrics: string, name: string): number {
  const line = metrics.split('\n').find(text => text.startsWith(`${name} `))
  return line ? Number(line.slice(name.length + 1)) : 0
}
