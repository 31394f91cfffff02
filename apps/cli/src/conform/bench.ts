/** Where a foreign worker is tried: an embedded platform, a proxy that disturbs, the workers that run, and tasks that are judged at their end. */
import { setTimeout as sleep } from 'node:timers/promises'
import { createClient, type TaskHandle } from '@rivulet/client'
import { messagesOf, type TaskState } from '@rivulet/protocol'
import type { Environment } from '../context.ts'
import { environmentFor } from '../platform/program-environment.ts'
import { startTemporaryPlatform, type TemporaryPlatform } from '../platform/temporary-platform.ts'
import { readMessages } from '../tasks/all-messages.ts'
import { tellTask } from '../tasks/task-story.ts'
import { ForeignWorker } from './foreign-worker.ts'
import { WorkerProxy } from './worker-proxy.ts'

/** A turn of a worker that is gone goes on elsewhere when its lease is over. */
export const leaseMs = 5_000
const knobs = { LEASE_MS: String(leaseMs), HEARTBEAT_MS: '500', RECONCILE_MS: '500' }

/** The agents that the worker has to offer. */
export const agents = ['conform-echo', 'conform-step', 'conform-ask'] as const
type AgentName = (typeof agents)[number]

export type BenchOptions = {
  command: readonly string[]
  environment: Environment
  /** Multiplies every limit, for a slow machine. */
  patience: number
  /** Ends every wait, with an error. */
  signal: AbortSignal
}

/** A task at its end: as a viewer has it that has followed from the first event, which is the same as what is stored. */
export type Ending = {
  texts: string[]
  /** Every text that an attempt has shown. */
  shown: ReadonlySet<string>
  attempt: number
}

export class Bench {
  readonly #options: BenchOptions
  readonly #platform: TemporaryPlatform
  readonly #client: ReturnType<typeof createClient>
  readonly proxy: WorkerProxy
  #workerUrl = ''
  #workers: ForeignWorker[] = []
  #tasks: TaskHandle[] = []

  private constructor(options: BenchOptions, platform: TemporaryPlatform) {
    this.#options = options
    this.#platform = platform
    this.#client = createClient({ url: platform.url })
    this.proxy = new WorkerProxy(platform.url)
  }

  static async open(options: BenchOptions): Promise<Bench> {
    const idle = { refused: new Promise<never>(() => {}), stop: async () => {} }
    const environment = { ...options.environment, ...knobs }
    const platform = await startTemporaryPlatform({ environment, agentFiles: [], startWorker: () => idle })
    const bench = new Bench({ ...options, environment }, platform)
    try {
      await bench.#open()
    } catch (error) {
      await bench.close()
      throw error
    }
    return bench
  }

  async #open(): Promise<void> {
    this.#workerUrl = await this.proxy.listen()
    const isReady = () =>
      this.#client.ready().then(
        () => true,
        () => false,
      )
    await this.until('the API is ready', isReady, 120)
  }

  /** Another worker, ready when this resolves. */
  async start(): Promise<ForeignWorker> {
    const { command, environment } = this.#options
    const before = this.proxy.greeted.size
    const own = environmentFor('worker', { ...environment, RIVULET_URL: this.#workerUrl, RIVULET_TRANSPORT: 'http' })
    const worker = new ForeignWorker(command, own)
    this.#workers.push(worker)
    try {
      await this.until('a hello of the worker', () => worker.hasExited || this.proxy.greeted.size > before, 60)
      if (worker.hasExited) throw new Error(`The worker ended (${(await worker.exited).reason})`)
      const listed = async () => (await this.#client.agents.list()).filter(({ workers }) => workers > 0).map(({ name }) => name)
      await this.until(`the agents ${agents.join(', ')} of the worker`, async () => {
        const names = await listed()
        return agents.every(name => names.includes(name))
      })
    } catch (error) {
      throw new Error(`${(error as Error).message}. It wrote:\n${worker.output}`)
    }
    return worker
  }

  /** A worker that runs, for laws that do not disturb it. */
  async worker(): Promise<ForeignWorker> {
    return this.#workers.find(({ hasExited }) => !hasExited) ?? this.start()
  }

  async task(agent: AgentName, input: string, params: Record<string, number> = {}): Promise<TaskHandle> {
    const task = await this.#client.tasks.create({ agent, input, params, maxAttempts: 20 })
    this.#tasks.push(task)
    return task
  }

  /** Follows a task to its end. */
  ending(task: TaskHandle): Promise<Ending> {
    const ending = this.#follow(task)
    // A law that is broken before its tasks end does not wait for them.
    ending.catch(() => {})
    return ending
  }

  async #follow(task: TaskHandle): Promise<Ending> {
    const shown = new Set<string>()
    let last: TaskState | null = null
    const signal = AbortSignal.any([this.#options.signal, AbortSignal.timeout(120_000 * this.#options.patience)])
    for await (const { state } of tellTask(task, { signal })) {
      last = state
      for (const text of textsOf(messagesOf(state))) shown.add(text)
    }
    const stored = textsOf(await readMessages(task))
    const streamed = last ? textsOf(messagesOf(last)) : []
    if (JSON.stringify(stored) !== JSON.stringify(streamed))
      throw new Error(`a viewer has ${quote(streamed)}, but stored is ${quote(stored)}`)
    const { task: found, turns } = await task.detail()
    if (found.status !== 'completed')
      throw new Error(`the task ended as ${found.status}: ${turns[0]?.error?.detail ?? turns[0]?.error?.message}`)
    return { texts: stored, shown, attempt: turns[0]?.attempt ?? 0 }
  }

  /** Resolves when the turn has shown some output. */
  async begun(task: TaskHandle): Promise<void> {
    await this.until('output of the turn', async () => textsOf(await readMessages(task)).join('') !== '')
  }

  async openWait(task: TaskHandle): Promise<string> {
    let id = ''
    await this.until('the question of the turn', async () => {
      id = (await task.waits())[0]?.id ?? ''
      return id !== ''
    })
    return id
  }

  async until(what: string, condition: () => boolean | Promise<boolean>, seconds = 30): Promise<void> {
    const deadline = performance.now() + seconds * this.#options.patience * 1000
    this.#options.signal.throwIfAborted()
    while (!(await condition())) {
      if (performance.now() > deadline) throw new Error(`waited ${seconds * this.#options.patience} s for ${what}`)
      await this.pause(50)
    }
  }

  pause(ms: number): Promise<void> {
    return sleep(ms, undefined, { signal: this.#options.signal })
  }

  /** @returns whether a time is within a limit of the laws */
  isWithin(ms: number, limitMs: number): boolean {
    return ms <= limitMs * this.#options.patience
  }

  /** After a law: what it has left behind must not disturb the next one. */
  async clear({ isBroken }: { isBroken: boolean }): Promise<string> {
    this.proxy.heal()
    const output = this.#workers.map(worker => worker.output).join('')
    for (const task of this.#tasks.splice(0)) if (isBroken) await task.cancel().catch(() => {})
    for (const extra of this.#workers.splice(isBroken ? 0 : 1)) await extra.kill()
    if (this.#workers[0]?.hasExited) this.#workers = []
    return output
  }

  async close(): Promise<void> {
    for (const worker of this.#workers.splice(0)) await worker.kill()
    this.proxy.close()
    await this.#platform.stop()
  }
}

export function quote(texts: readonly string[]): string {
  const whole = JSON.stringify(texts)
  return whole.length <= 200 ? whole : `${whole.slice(0, 200)}… (${whole.length} characters)`
}

function textsOf(messages: readonly { author: string; content: { type: string } }[]): string[] {
  return messages.flatMap(({ author, content }) => (author === 'agent' && 'text' in content ? [String(content.text)] : []))
}
