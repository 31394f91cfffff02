/**
 * The clients of the bench. They insist as real ones do: a request is sent again, under its key, until it is answered; a viewer comes back until
 * it receives the end, and they respond to the waits of a turn. A journal records every response and event, and a viewer that receives `turn.finished`
 * reads the rows at once.
 */
import { appendFileSync, writeFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Message, Wait } from '@rivulet/protocol'
import { type Accepted, createClient, type ErrorReply, type Page, type TaskDetail } from '../support/platform/platform-client.ts'
import { until } from '../support/until.ts'
import { type Viewer, type WatchOptions, watch } from '../support/viewers/viewer.ts'
import type { Frame } from '../support/viewers/viewer-connection.ts'
import type { ClientLine, Stored } from './checker/history.ts'
import { inputOf, paramsOf, type Story } from './checker/story.ts'

export type Crowd = ReturnType<typeof createCrowd>

type Rejection = { status: number; code: string | undefined }

/** Responses that ask for a retry. */
const comeBack = [409, 429, 500, 502, 503]
const thinkMs = 700
const patience = { timeoutMs: 120_000, intervalMs: 50 }

export function createCrowd({ urls, file }: { urls: readonly string[]; file: string }) {
  const viewers: Viewer[] = []
  const looks: Promise<void>[] = []
  const answers = new Map<string, Promise<void>>()
  let isLeaving = false
  let asked = 0
  writeFileSync(file, '')
  return { file, viewers, promise, promiseTurn, cancel, join, read, leave }

  /** A task that tells this story. */
  async function promise(story: Story, body: object = {}): Promise<string> {
    const { task } = await insist<Accepted>('/v1/tasks', { agent: 'scripted', input: inputOf(story), params: paramsOf(story), ...body })
    note({ promised: { task: task.id, story } })
    return task.id
  }

  async function promiseTurn(task: string, story: Story): Promise<void> {
    await insist(`/v1/tasks/${task}/turns`, { input: inputOf(story), params: paramsOf(story) })
    note({ promised: { task, story } })
  }

  async function cancel(task: string): Promise<void> {
    await insist(`/v1/tasks/${task}/cancel`, {})
  }

  /** A viewer who knows every API. */
  function join(task: string, options: Omit<WatchOptions, 'urls' | 'record'> = {}): Viewer {
    const first = asked++
    const rotated = urls.map((_, i) => urls[(first + i) % urls.length] ?? '')
    const viewer = watch(task, {
      ...{ urls: rotated, ...options },
      record: line => {
        note(line)
        if ('frame' in line) hear(task, line.frame)
      },
    })
    viewers.push(viewer)
    return viewer
  }

  function hear(task: string, { data }: Frame): void {
    if (data.type === 'turn.finished') looks.push(look(task, data.turn))
    const waits = data.type === 'turn.waiting' ? [data.wait] : data.type === 'snapshot' ? data.turns.flatMap(turn => turn.waits ?? []) : []
    for (const { id, status, actions } of waits)
      if (status === 'open' && actions.length > 0 && !answers.has(id)) answers.set(id, answer(task, id))
  }

  /** Two people disagree, at once and at different APIs. The first one decides. Most turns have parked by then, some are just about to. */
  async function answer(task: string, wait: string): Promise<void> {
    await sleep(answers.size % 4 === 3 ? 0 : thinkMs)
    // The first request goes to another API than that of the question before.
    asked += (asked + answers.size) % 2
    await Promise.all(
      ['accept', 'decline'].map(async action => {
        const path = `/v1/tasks/${task}/waits/${wait}/answer`
        const given = await insist<{ wait: Wait } | 'late'>(path, { action }, ({ status, code }) =>
          status === 410 || code === 'already_answered' ? 'late' : null,
        )
        if (given !== 'late') note({ answered: { task, wait, action } })
      }),
    )
  }

  async function look(task: string, turnNumber: number): Promise<void> {
    const seen = await until<Stored | 'left'>(`${task} is looked at`, async () => (isLeaving ? 'left' : read(task)), patience).catch(
      () => 'left' as const,
    )
    if (seen !== 'left') note({ look: { task, turnNumber, ...seen } })
  }

  /** What an API says of a task, or null when it cannot be asked now. */
  async function read(task: string): Promise<Stored | null> {
    const { get } = next()
    try {
      const detail = await get<TaskDetail>(`/v1/tasks/${task}`)
      const messages: Message[] = []
      for (let after: number | null = -1; after !== null; ) {
        const query: string = after < 0 ? '' : `?after=${after}`
        const page = await get<Page<Message, number>>(`/v1/tasks/${task}/messages${query}`)
        if (page.status !== 200) return null
        messages.push(...page.body.data)
        after = page.body.nextCursor
      }
      return detail.status === 200 ? { detail: detail.body, messages } : null
    } catch {
      return null
    }
  }

  /** @param settle what an error is that no retry changes; null for any other */
  async function insist<T>(path: string, body: object, settle: (rejection: Rejection) => T | null = () => null): Promise<T> {
    const headers = { 'idempotency-key': crypto.randomUUID() }
    return until(
      `${path} is answered`,
      async () => {
        const reply = await next()
          .post<T>(path, body, headers)
          .catch(() => null)
        if (reply && reply.status < 300) return reply.body
        const settled = reply && settle({ status: reply.status, code: (reply.body as ErrorReply).error?.code })
        if (settled !== null) return settled
        if (reply && !comeBack.includes(reply.status))
          throw new Error(`${path} was answered ${reply.status}: ${JSON.stringify(reply.body)}`)
        return null
      },
      patience,
    )
  }

  function next() {
    const url = urls[asked++ % urls.length] ?? ''
    return createClient(() => url)
  }

  function note(line: ClientLine): void {
    appendFileSync(file, `${JSON.stringify(line)}\n`)
  }

  /** Waits for the end of every viewer, or stops the viewer after a while. */
  async function leave(): Promise<void> {
    const waited = new AbortController()
    const impatience = sleep(60_000, undefined, { signal: waited.signal }).catch(() => {})
    await Promise.race([Promise.all(viewers.map(({ ended }) => ended)), impatience])
    await Promise.race([Promise.all(looks), impatience])
    waited.abort()
    isLeaving = true
    await Promise.all([...viewers.map(viewer => viewer.stop()), ...looks, ...answers.values()])
    isLeaving = false
  }
}
