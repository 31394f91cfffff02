/** Schedules on two APIs: each time runs once, and what became of it can be read. The times are moved in Postgres, so that no test waits for a clock. */
import { createClient, type RivuletClient, type Schedule } from '@rivulet/client'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type Platform, startPlatform } from '../support/platform/platform.ts'
import type { Reply } from '../support/platform/platform-client.ts'
import { until } from '../support/until.ts'

let platform: Platform
let client: RivuletClient

beforeAll(async () => {
  platform = await startPlatform({ apis: 2, env: { MAX_SCHEDULES_PER_TENANT: '30' } })
  client = createClient({ url: platform.url })
})
afterAll(() => platform.close())

/** Once a year, so that it is due only when a test says so. */
const yearly = { agent: 'echo', cron: '0 0 1 1 *', timezone: 'Europe/Berlin' }

/** As if its next time had come so long ago. */
function due({ id }: Schedule, agoMs = 0): Promise<unknown> {
  return platform.pg.query(
    `update schedules set next_at = date_trunc('milliseconds', now()) - $2 * interval '1 millisecond' where id = $1`,
    [id, agoMs],
  )
}

const historyOf = ({ id }: Schedule) => client.schedules.history(id).then(({ data }) => data)

test('a schedule creates a task at its time, once for both APIs, and then has its next time', async () => {
  const made = await Promise.all(Array.from({ length: 12 }, (_, i) => client.schedules.create({ ...yearly, input: `run ${i}` })))
  await Promise.all(made.map(schedule => due(schedule)))
  for (const [i, schedule] of made.entries()) {
    await until('it ran', async () => (await historyOf(schedule)).length > 0)
    const runs = await historyOf(schedule)
    expect(runs).toEqual([{ at: expect.any(String), createdAt: expect.any(String), task: expect.any(String), turn: 1 }])
    const { text } = await client.tasks.get(runs[0]?.task ?? '').result()
    expect(text).toContain(`run ${i}`)
    const { nextAt } = await client.schedules.get(schedule.id)
    expect(nextAt).toMatch(/-12-31T23:00:00.000Z$/)
  }
  const { rows } = await platform.pg.query('select task, count(*) from schedule_runs group by task having count(*) > 1')
  expect(rows).toEqual([])
})

test('a schedule with a name sends its runs to one task, turn after turn', async () => {
  const schedule = await client.schedules.create({ ...yearly, name: 'digest', input: 'now', overlap: 'queue' })
  for (const turn of [1, 2]) {
    await due(schedule)
    await until('it ran', async () => (await historyOf(schedule)).length === turn)
    expect((await historyOf(schedule))[0]).toMatchObject({ turn })
  }
  expect(new Set((await historyOf(schedule)).map(({ task }) => task)).size).toBe(1)
})

describe('a POST that is repeated under its Idempotency-Key', () => {
  test('creates one schedule, and is refused for another schedule', async () => {
    const input = `once ${crypto.randomUUID()}`
    const create = (body: object) => post<{ schedule: Schedule }>('', 'create', { ...yearly, ...body })
    const replies = [await create({ input }), await create({ input }), await create({ input })]
    expect(replies.map(({ status, body }) => [status, body.schedule.id])).toEqual(Array(3).fill([201, replies[0]?.body.schedule.id]))
    expect(replies.map(({ headers }) => headers.get('idempotent-replayed'))).toEqual([null, 'true', 'true'])
    expect(
      (await client.schedules.list({ limit: 100 })).data.filter(schedule => JSON.stringify(schedule.input).includes(input)),
    ).toHaveLength(1)
    expect((await create({ input: 'other' })).body).toMatchObject({ error: { code: 'idempotency_key_reused' } })
  })

  test('triggers one run', async () => {
    const schedule = await client.schedules.create({ ...yearly, input: 'x' })
    const replies = [await post(`/${schedule.id}/trigger`, 'run'), await post(`/${schedule.id}/trigger`, 'run')]
    expect(replies.map(({ status }) => status)).toEqual([202, 202])
    expect(replies[1]?.body).toEqual(replies[0]?.body)
    expect(await historyOf(schedule)).toHaveLength(1)
  })

  test('pauses and resumes once', async () => {
    const schedule = await client.schedules.create({ ...yearly, input: 'x' })
    for (const [deed, key] of [
      ['pause', 'first'],
      ['resume', 'second'],
      ['pause', 'first'],
    ])
      await post(`/${schedule.id}/${deed}`, `${key}`)
    expect(await client.schedules.get(schedule.id)).toMatchObject({ status: 'active' })
  })

  function post<T = unknown>(path: string, key: string, body?: object): Promise<Reply<T>> {
    const headers = { 'idempotency-key': key, ...(body && { 'content-type': 'application/json' }) }
    return platform.client.send('POST', `/v1/schedules${path}`, { headers, ...(body && { body: JSON.stringify(body) }) })
  }
})

test('a schedule keeps the file of its input until it is deleted, and each of its runs does so for its task', async () => {
  const [file, unused] = [await client.files.upload(new Uint8Array(3)), await client.files.upload(new Uint8Array(3))]
  const isThere = async ({ id }: { id: string }) => (await fetch(`${platform.url}/v1/files/${id}`)).ok
  const input = { type: 'media' as const, mimeType: 'application/pdf', file: file.id }
  const [first, second] = [await client.schedules.create({ ...yearly, input }), await client.schedules.create({ ...yearly, input })]
  await platform.pg.query("update files set created_at = now() - interval '25 hours' where id = any($1)", [[file.id, unused.id]])
  await until('unused files are removed', async () => !(await isThere(unused)))
  await expect(client.files.delete(file.id)).rejects.toMatchObject({ code: 'file_in_use' })
  const { task = '' } = await client.schedules.trigger(first.id)
  await client.tasks.get(task).result()
  await client.schedules.remove(first.id)
  await client.tasks.get(task).remove()
  expect(await isThere(file)).toBe(true)
  await client.schedules.remove(second.id)
  expect(await isThere(file)).toBe(false)
})

describe('while the run before has not ended', () => {
  const slow = { ...yearly, agent: 'scripted', params: { steps: [{ sleep: 600_000 }] } }

  test('skip leaves the next one out', async () => {
    const schedule = await client.schedules.create({ ...slow, overlap: 'skip' })
    await client.schedules.trigger(schedule.id)
    await due(schedule)
    await until('it was skipped', async () => (await historyOf(schedule)).length === 2)
    const [second, first] = await historyOf(schedule)
    expect([first?.task === undefined, second?.skipReason, second?.task]).toEqual([false, 'overlap', undefined])
    await client.tasks.get(first?.task ?? '').cancel()
  })

  test('queue starts it beside the one before, and interrupt cancels that', async () => {
    const schedule = await client.schedules.create({ ...slow, overlap: 'interrupt' })
    const { task: before = '' } = await client.schedules.trigger(schedule.id)
    const { task: after = '' } = await client.schedules.trigger(schedule.id)
    await until('the first was canceled', async () => (await client.tasks.get(before).detail()).task.status === 'canceled')
    const beside = await client.schedules.create({ ...slow, overlap: 'queue' })
    const ran = [await client.schedules.trigger(beside.id), await client.schedules.trigger(beside.id)]
    await until('both run', async () => {
      const found = await Promise.all(ran.map(({ task = '' }) => client.tasks.get(task).detail()))
      return found.every(({ task }) => task.status === 'running')
    })
    for (const id of [after, ...ran.map(({ task = '' }) => task)]) await client.tasks.get(id).cancel()
  })
})

test('a time that no server was there for is left out, or runs once', async () => {
  const minutely = { ...yearly, cron: '*/5 * * * *', input: 'x' }
  const [skip, once] = [await client.schedules.create(minutely), await client.schedules.create({ ...minutely, missed: 'once' })]
  for (const schedule of [skip, once]) await due(schedule, 3_600_000)
  await until('both were looked at', async () => (await historyOf(skip)).length > 0 && (await historyOf(once)).length > 0)
  expect(await historyOf(skip)).toMatchObject([{ skipReason: 'missed' }])
  const [run, ...others] = await historyOf(once)
  expect([others, run?.skipReason, run?.task !== undefined]).toEqual([[], undefined, true])
  for (const { id } of [skip, once]) expect(Date.parse((await client.schedules.get(id)).nextAt ?? '')).toBeGreaterThan(Date.now() - 60_000)
  for (const { id } of [skip, once]) await client.schedules.remove(id)
})

test('a paused schedule does not run, and continues with its next time', async () => {
  const schedule = await client.schedules.create({ ...yearly, input: 'x' })
  expect(await client.schedules.pause(schedule.id)).toMatchObject({ status: 'paused' })
  const witness = await client.schedules.create({ ...yearly, input: 'x' })
  for (const each of [schedule, witness]) await due(each)
  await until('the other ran', async () => (await historyOf(witness)).length > 0)
  expect(await historyOf(schedule)).toEqual([])
  const resumed = await client.schedules.resume(schedule.id)
  expect(resumed).toMatchObject({ status: 'active', nextAt: schedule.nextAt })
  expect(await historyOf(schedule)).toEqual([])
})

test('a run that is rejected says why, and the schedule continues', async () => {
  const schedule = await client.schedules.create({
    ...yearly,
    name: 'full',
    input: 'x',
    overlap: 'queue',
    agent: 'scripted',
    params: { steps: [{ sleep: 600_000 }] },
  })
  const { task = '' } = await client.schedules.trigger(schedule.id)
  const send = () =>
    client.tasks
      .get(task)
      .send('more')
      .then(
        () => null,
        error => error.code,
      )
  await Promise.all(Array.from({ length: 99 }, send))
  await until('no more turns may wait', async () => (await send()) === 'too_many_turns')
  expect(await client.schedules.trigger(schedule.id)).toMatchObject({ skipReason: 'rejected', error: { code: 'too_many_turns' } })
  expect(await client.schedules.get(schedule.id)).toMatchObject({ status: 'active' })
  await client.tasks.get(task).cancel()
})

describe('a request that makes no sense is refused', () => {
  test.each([
    ['a bad cron line', { cron: '99 * * * *' }, 'validation_failed'],
    ['a zone that does not exist', { timezone: 'Mars/Base' }, 'validation_failed'],
    ['every second', { cron: '* * * * * *' }, 'validation_failed'],
    ['a delay', { delayMs: 5 }, 'validation_failed'],
    ['a name without an input', { name: 'n', input: undefined }, 'validation_failed'],
    ['an unknown agent', { agent: 'unheard-of' }, 'unknown_agent'],
  ])('%s', async (_, wrong, code) => {
    await expect(client.schedules.create({ ...yearly, input: 'x', ...wrong } as never)).rejects.toMatchObject({ code })
  })

  test('one more than a tenant may have', async () => {
    const { schedules } = createClient({ url: platform.url, maxRetries: 0 })
    const more = async () => {
      for (let i = 0; i < 31; i += 1) await schedules.create({ ...yearly, input: 'x' })
    }
    await expect(more()).rejects.toMatchObject({ code: 'quota_exceeded' })
  })
})
