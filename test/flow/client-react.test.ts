/** The React hook against the real thing: what a component shows is what is stored, and a component that goes leaves no connection behind. */
import { createClient, type Json } from '@rivulet/client'
import { RivuletProvider, type TaskSource, type UsedTask, useTask } from '@rivulet/client/react'
import { Window } from 'happy-dom'
import { createElement, StrictMode } from 'react'
import type { Root } from 'react-dom/client'
import { afterAll, beforeAll, beforeEach, expect, test, vi } from 'vitest'
import { repeat, rest, say } from '../support/agents/scripts.ts'
import { metric } from '../support/platform/metrics.ts'
import { type Platform, startPlatform } from '../support/platform/platform.ts'
import { until } from '../support/until.ts'

const page = new Window()
let platform: Platform
let root: Root
let element: ReturnType<typeof page.document.createElement>

beforeAll(async () => {
  // Only what React DOM looks for: the network is Node's own.
  const looked = { window: page, document: page.document, navigator: page.navigator }
  for (const [name, value] of Object.entries(looked)) vi.stubGlobal(name, value)
  platform = await startPlatform()
})
beforeEach(async () => {
  const { createRoot } = await import('react-dom/client')
  element = page.document.createElement('div')
  root = createRoot(element as unknown as Parameters<typeof createRoot>[0])
})
afterAll(() => platform.close())

test('a component creates a task, once also in StrictMode, and shows what is stored in the end', async () => {
  const words = repeat(30, say(0, 'word '), rest(10))
  const { latest } = mount({ agent: 'scripted', name: 'by a component', params: json({ steps: [words, say(1, 'done')] }) })
  await drawn(() => latest()?.connection === 'ended')
  expect(latest()).toMatchObject({ status: 'completed', error: null })
  const id = latest()?.task?.id ?? ''
  expect(latest()?.messages).toEqual(await platform.client.messages(id))
  expect(element.textContent).toBe(`${'word '.repeat(30)}done`)
  const { body } = await platform.client.get<{ data: unknown[] }>('/v1/tasks?agent=scripted')
  expect(body.data).toHaveLength(1)
  root.unmount()
})

test('a component that goes in the midst of it leaves no connection', async () => {
  const task = await createClient({ url: platform.url }).tasks.create({
    agent: 'scripted',
    params: json({ steps: [say(0, 'begun '), repeat(600, rest(100), say(0, 'on '))] }),
  })
  const { latest } = mount(task.id)
  await drawn(() => element.textContent?.startsWith('begun on ') === true)
  expect(latest()?.connection).toBe('live')
  await until('one viewer is connected', async () => (await viewers()) === 1)
  root.unmount()
  await until('no viewer is connected any more', async () => (await viewers()) === 0)
  await task.cancel()
  expect(element.textContent).toBe('')
})

function mount(source: TaskSource): { latest: () => UsedTask | undefined } {
  let latest: UsedTask | undefined
  const client = createClient({ url: platform.url })
  root.render(createElement(StrictMode, null, createElement(RivuletProvider, { client }, createElement(Shown))))
  return { latest: () => latest }

  function Shown() {
    const used = useTask(source)
    latest = used
    return used.messages.map(({ index, content }) => createElement('p', { key: index }, content.type === 'text' ? content.text : ''))
  }
}

function drawn(check: () => boolean): Promise<unknown> {
  return until('it is drawn', check)
}

function viewers(): Promise<number> {
  return metric(platform.url, 'rivulet_viewers')
}

/** Scripts are JSON. */
function json(params: object): Json {
  return params as Json
}
