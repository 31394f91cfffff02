/**
 * Lets a test see what a process holds, without what it has merely not thrown away yet: a process that is started with these options collects
 * its garbage on SIGUSR2.
 */
import { until } from '../until.ts'

const onSignal = "process.on('SIGUSR2', () => { globalThis.gc(); globalThis.gc() })"

export const collectingOptions = { NODE_OPTIONS: `--expose-gc --import data:text/javascript,${encodeURIComponent(onSignal)}` }

/** `key` where one is asked for. */
type Measured = { url: string; pid: number; key?: string }

/** Heap and buffers of an API process after a collection. */
export async function heldMemory(api: Measured): Promise<number> {
  const before = await collections(api)
  await until('garbage is collected', async () => {
    // Again, if need be: Node does not count each that is asked for.
    process.kill(api.pid, 'SIGUSR2')
    return (await collections(api)) > before
  })
  const metrics = await read(api)
  return gauge(metrics, 'nodejs_heap_size_used_bytes') + gauge(metrics, 'nodejs_external_memory_bytes')
}

async function collections(api: Measured): Promise<number> {
  return gauge(await read(api), 'nodejs_gc_duration_seconds_count{kind="major"}')
}

async function read({ url, key = '' }: Measured): Promise<string> {
  return (await fetch(`${url}/metrics`, { headers: { authorization: `Bearer ${key}` } })).text()
}

function gauge(metrics: string, name: string): number {
  const line = metrics.split('\n').find(text => text.startsWith(`${name} `))
  return line ? Number(line.slice(name.length + 1)) : 0
}
