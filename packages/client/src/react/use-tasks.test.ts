// @vitest-environment happy-dom
import type { Document } from 'happy-dom'
import { act, createElement, StrictMode } from 'react'
import { createRoot } from 'react-dom/client'
import { expect, test } from 'vitest'
import { createFakeApi, openStream } from '../../test/fake-api.ts'
import { snapshotOf, taskId, turnLog } from '../../test/sample-task.ts'
import { createClient } from '../client.ts'
import { RivuletProvider } from './client-context.ts'
import { useTasks } from './use-tasks.ts'

const page = globalThis as unknown as { document: Document; IS_REACT_ACT_ENVIRONMENT: boolean }
page.IS_REACT_ACT_ENVIRONMENT = true

test('two lists of a page show their tasks by one connection, also in StrictMode, and let go of it when they are gone', async () => {
  const other = taskId.replace(/1$/, '2')
  const api = createFakeApi(() => openStream())
  const client = createClient({ url: 'http://api.test', fetch: api.fetch as unknown as typeof fetch })
  function List({ ids }: { ids: string[] }) {
    const tasks = useTasks(ids)
    return createElement('p', null, tasks.map(({ id, status }) => `${id.slice(-1)}: ${status}`).join(', '))
  }
  const element = page.document.createElement('div')
  const root = createRoot(element as unknown as Parameters<typeof createRoot>[0])
  const lists = [createElement(List, { key: 1, ids: [taskId] }), createElement(List, { key: 2, ids: [other, taskId] })]
  await act(async () => root.render(createElement(StrictMode, null, createElement(RivuletProvider, { client }, ...lists))))
  const stream = await api.stream(0)
  expect(stream.request.body).toEqual({ tasks: { [taskId]: null, [other]: null }, follow: true })
  const { cursor, event } = snapshotOf(turnLog(1, [['one']]))
  stream.raw(`id: ${taskId}/${cursor}\nevent: snapshot\ndata: ${JSON.stringify(event)}\n\n`)
  await expect
    .poll(async () => {
      await act(() => new Promise<void>(resolve => setTimeout(resolve, 20)))
      return Array.from(element.querySelectorAll('p'), ({ textContent }) => textContent)
    })
    .toEqual(['1: completed', '2: null, 1: completed'])
  expect(api.streams).toHaveLength(1)
  await act(async () => root.unmount())
  await expect.poll(() => stream.isLeft()).toBe(true)
})
