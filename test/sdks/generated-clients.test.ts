/** Clients that openapi-typescript and @hey-api/openapi-ts generate from `/openapi.json`, unmodified: they type-check, create, list, answer, and read errors. */
import { spawnSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { startOwnWorker } from '../support/platform/own-worker.ts'
import { type Platform, startPlatform } from '../support/platform/platform.ts'
import { until } from '../support/until.ts'
import { registrar } from './asking-agents.ts'

vi.setConfig({ testTimeout: 300_000, hookTimeout: 300_000 })

const root = fileURLToPath(new URL('../..', import.meta.url))
const tools = join(root, 'test/sdks/node_modules/.bin')

/** What each program does by the client that was generated for it. */
type Program = {
  create(): Promise<string | undefined>
  list(): Promise<string[] | undefined>
  waits(task: string): Promise<string[] | undefined>
  answer(id: string, wait: string): Promise<string | undefined>
  failure(): Promise<string | undefined>
}

const withTypes = `
import createClient from 'openapi-fetch'
import type { components, paths } from './types.ts'

export function program(baseUrl: string) {
  const api = createClient<paths>({ baseUrl })
  return {
    async create() {
      const { data } = await api.POST('/v1/tasks', { body: { agent: 'registrar', input: 'hello' } })
      const task: components['schemas']['Task'] | undefined = data?.task
      return task?.id
    },
    list: async () => (await api.GET('/v1/tasks', { params: { query: { agent: 'registrar' } } })).data?.data.map(({ id }) => id),
    waits: async (task: string) => (await api.GET('/v1/waits', { params: { query: { task } } })).data?.data.map(({ id }) => id),
    async answer(id: string, wait: string) {
      const params = { path: { id, wait } }
      const body = { action: 'accept', content: { name: 'Ada' } } as const
      return (await api.POST('/v1/tasks/{id}/waits/{wait}/answer', { params, body })).data?.wait.status
    },
    failure: async () => (await api.POST('/v1/tasks', { body: { agent: 'unknown-agent' } })).error?.error.code,
  }
}
`

const withCalls = `
import { answerWait, createTask, listTasks, listWaits, type Task } from './sdk/index.ts'
import { createClient } from './sdk/client/index.ts'

export function program(baseUrl: string) {
  const client = createClient({ baseUrl })
  return {
    async create() {
      const { data } = await createTask({ client, body: { agent: 'registrar', input: 'hello' } })
      const task: Task | undefined = data?.task
      return task?.id
    },
    list: async () => (await listTasks({ client, query: { agent: 'registrar' } })).data?.data.map(({ id }) => id),
    waits: async (task: string) => (await listWaits({ client, query: { task } })).data?.data.map(({ id }) => id),
    async answer(id: string, wait: string) {
      const body = { action: 'accept', content: { name: 'Ada' } } as const
      return (await answerWait({ client, path: { id, wait }, body })).data?.wait.status
    },
    failure: async () => (await createTask({ client, body: { agent: 'unknown-agent' } })).error?.error.code,
  }
}
`

const compilerOptions = {
  ...{ module: 'esnext', moduleResolution: 'bundler', target: 'es2022', strict: true, noEmit: true, skipLibCheck: true },
  ...{ allowImportingTsExtensions: true, types: [], lib: ['ES2023', 'DOM', 'DOM.Iterable'] },
}

let platform: Platform
let folder: string

beforeAll(async () => {
  platform = await startPlatform({ apis: 1, workers: 0 })
  mkdirSync(join(root, 'test/sdks/.rivulet'), { recursive: true })
  folder = mkdtempSync(join(root, 'test/sdks/.rivulet/generated-'))
  const document = join(folder, 'openapi.json')
  writeFileSync(document, await (await fetch(`${platform.url}/openapi.json`)).text())
  run(join(tools, 'openapi-typescript'), document, '--output', join(folder, 'types.ts'))
  run(join(tools, 'openapi-ts'), '--input', document, '--output', join(folder, 'sdk'))
  const programs = {
    'with-types.ts': withTypes,
    'with-calls.ts': withCalls,
    'tsconfig.json': JSON.stringify({ compilerOptions, include: ['*.ts'] }),
  }
  for (const [name, text] of Object.entries(programs)) writeFileSync(join(folder, name), text)
})
afterAll(async () => {
  if (folder) rmSync(folder, { recursive: true, force: true })
  await platform?.close()
})

/** Fails with what the program has written. */
function run(program: string, ...args: string[]): void {
  const { status, stdout, stderr } = spawnSync(program, args, { cwd: folder, encoding: 'utf8', env: { ...process.env, CI: 'true' } })
  expect([status, status === 0 ? '' : `${stdout}${stderr}`]).toEqual([0, ''])
}

test('both type-check', () => {
  run(join(root, 'node_modules/.bin/tsc'), '-p', folder)
})

test.each([
  ['the types of openapi-typescript', 'with-types.ts'],
  ['the calls of @hey-api/openapi-ts', 'with-calls.ts'],
])('%s create a task, list it, answer its question and read an error', async (_, file) => {
  await startOwnWorker(platform, [registrar])
  const module = (await import(join(folder, file))) as { program(url: string): Program }
  const { create, list, waits, answer, failure } = module.program(platform.url)
  const id = (await create()) ?? ''
  expect(await list()).toContain(id)
  const [wait = ''] = await until('the turn asks', async () => {
    const open = await waits(id)
    return open && open.length > 0 && open
  })
  expect([await answer(id, wait), await failure()]).toEqual(['answered', 'unknown_agent'])
})
