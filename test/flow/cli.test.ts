/** The command line against a real platform, in pipes: what a script that calls it can rely on. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import type { Message, Task, Turn } from '@rivulet/protocol'
import { defineAgent } from '@rivulet/worker'
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest'
import { fail, full, repeat, rest, type Step, say, start } from '../support/agents/scripts.ts'
import { freePort } from '../support/free-port.ts'
import { startOwnWorker } from '../support/platform/own-worker.ts'
import { type Platform, startPlatform } from '../support/platform/platform.ts'
import { type CliResult, cliArguments, runCli } from '../support/terminal.ts'
import { until } from '../support/until.ts'

const esc = '\u001b'

let platform: Platform

beforeAll(async () => {
  platform = await startPlatform()
})
afterAll(() => platform.close())

describe('run', () => {
  test('what the agent says is on stdout, and nothing else; no color; 0', async () => {
    const { code, stdout, stderr } = await rivulet('run', 'echo', 'hello, wide world')
    expect([code, stdout]).toEqual([0, 'hello, wide world\n'])
    expect(stderr).toMatch(/^task [0-9a-f-]{36}\ncompleted in .*\n$/)
    expect(stdout + stderr).not.toContain(esc)
  })

  test('- reads the input from stdin', async () => {
    expect(await rivuletWith({ input: 'from a pipe' }, 'run', 'echo', '-')).toMatchObject({ code: 0, stdout: 'from a pipe\n' })
  })

  test('--name of a task that exists shows the new turn only', async () => {
    expect(await rivulet('run', 'echo', 'one', '--name', 'twice')).toMatchObject({ code: 0, stdout: 'one\n' })
    const two = await rivulet('run', 'echo', 'two', '--name', 'twice')
    expect(two).toMatchObject({ code: 0, stdout: 'two\n' })
    expect(two.stderr).not.toContain('left out')
    const { stdout } = await rivulet('run', 'echo', 'three', '--name', 'twice', '--json')
    expect(stdout).toContain('"three"')
    expect(stdout).not.toMatch(/"one"|"two"/)
  })

  test('reasoning and tools go to stderr', async () => {
    const { code, stdout, stderr } = await runScript([
      full(0, { type: 'reasoning', summary: [], content: ['let me look'] }),
      full(1, { type: 'tool_request', callId: 'c', name: 'search', arguments: { query: 'redis' } }),
      start(2, { type: 'tool_response', callId: 'c', name: 'search', content: null, isError: false }),
      rest(20),
      full(2, { type: 'tool_response', callId: 'c', name: 'search', content: 'found', isError: false }),
      say(3, 'It is fast.'),
    ])
    expect([code, stdout]).toEqual([0, 'It is fast.\n'])
    expect(stderr).toMatch(/let me look\n→ search {"query":"redis"}\n✓ search [\d.]+ m?s\n/)
  })

  test('a task that fails: 1, and one sentence that says why', async () => {
    const { code, stderr } = await runScript([say(0, 'so far'), fail('no luck')], '--name', 'fails')
    expect(code).toBe(1)
    expect(stderr).toMatch(/failed in .*: no luck \(agent_error\)\n$/)
  })

  test('an exception of an agent is shown in full to its developer', async () => {
    const agent = defineAgent('leaky', () => Promise.reject(new Error('connect ECONNREFUSED db-7')))
    await startOwnWorker(platform, [agent])
    const { task } = await platform.client.createTask({ agent: 'leaky', maxAttempts: 1 })
    const { code, stderr } = await rivulet('tail', task.id)
    expect(code).toBe(1)
    expect(stderr).toMatch(/failed in .*: connect ECONNREFUSED db-7 \(agent_error\)\n$/)
    expect((await rivulet('show', task.id)).stdout).toContain('connect ECONNREFUSED db-7 (agent_error)')
  })

  test('a retried task is printed again', async () => {
    const params = JSON.stringify({ attempts: { 1: [say(0, 'first try'), fail('no')], 2: [say(0, 'second try')] } })
    const { code, stdout, stderr } = await rivulet('run', 'scripted', '--params', params)
    expect([code, stdout]).toEqual([0, 'first try\nsecond try\n'])
    expect(stderr).toContain('↻ attempt 2\n')
  })

  test('what an agent says cannot steer the terminal', async () => {
    const { stdout } = await runScript([say(0, `a${esc}]0;ow`), rest(20), say(0, `ned\u0007b${esc}[2J\r\u009b31mc`)])
    expect(stdout).toBe('abc\n')
  })

  test('nor can the names, arguments, results and errors of its tools, its thoughts, data or failures', async () => {
    const evil = `${esc}]0;owned\u0007${esc}[2J\u009b31m\r\u202e\u2066x`
    const steps = [
      full(0, { type: 'reasoning', summary: [], content: [`think ${evil}`] }),
      full(1, { type: 'tool_request', callId: 'c', name: `tool${evil}`, arguments: { [evil]: evil } }),
      full(2, { type: 'tool_response', callId: 'c', name: `tool${evil}`, content: evil, isError: true }),
      full(3, { type: 'data', data: { [evil]: evil } }),
      fail(`failed ${evil}`),
    ]
    const { task } = await platform.client.finishedTask({ agent: 'scripted', input: evil, name: evil, params: { steps }, maxAttempts: 1 })
    for (const args of [['tail', task.id], ['tail', task.id, '--json'], ['show', task.id], ['tasks']]) {
      const { stdout, stderr } = await rivulet(...args)
      expect(stdout.length).toBeGreaterThan(20)
      expect([...new Set((stdout + stderr).match(/[\p{Cc}\u202a-\u202e\u2066-\u2069]/gu))], args.join(' ')).toEqual(['\n'])
    }
  })

  test('--json: every event is a line, from turn.queued to end', async () => {
    const { code, stdout } = await rivulet('run', 'echo', 'one two', '--json')
    const events = lines(stdout)
    expect(code).toBe(0)
    expect(events.map(({ type }) => type)).toEqual(expect.arrayContaining(['turn.queued', 'message.delta', 'turn.finished']))
    expect(events.at(-1)).toMatchObject({ type: 'end', status: 'completed', cursor: expect.stringMatching(/^\d+-\d+$/) })
  })

  test('--detach prints the id, and leaves', async () => {
    const { code, stdout } = await rivulet('run', 'echo', 'later', '--detach')
    expect(code).toBe(0)
    expect((await platform.client.waitForEnd(stdout.trim())).task.status).toBe('completed')
  })

  test('a task that another caller cancels: 130', async () => {
    const running = runScript([say(0, 'begun'), rest(60_000)], '--name', 'to be canceled')
    const task = await taskNamed('to be canceled')
    await platform.client.waitForTask(task.id, ({ task: { status } }) => status === 'running')
    expect((await rivulet('cancel', task.id)).stdout).toBe('canceled\n')
    expect(await running).toMatchObject({ code: 130, stderr: expect.stringContaining('canceled') })
  })

  test('SIGINT cancels the task, and its words so far stay', async () => {
    const params = script([say(0, 'begun'), rest(60_000)])
    const command = ['run', 'scripted', '--name', 'interrupted', '--params', params, '--url', platform.url]
    const child = spawn(process.execPath, cliArguments(command))
    await once(child.stdout, 'data')
    child.kill('SIGINT')
    expect((await once(child, 'close'))[0]).toBe(130)
    const { task } = await platform.client.waitForEnd((await taskNamed('interrupted')).id)
    expect(task.status).toBe('canceled')
    expect(await platform.client.messages(task.id)).toMatchObject([{ status: 'aborted', content: { text: 'begun' } }])
  })

  test('a reader that leaves early is no error', async () => {
    const child = spawn('bash', [
      '-c',
      'set -o pipefail; "$0" "$@" | head -c 10; echo "$?"',
      process.execPath,
      ...cliArguments(['run', 'echo', 'word '.repeat(20_000), '--url', platform.url]),
    ])
    let out = ''
    let err = ''
    child.stdout.on('data', bytes => (out += bytes))
    child.stderr.on('data', bytes => (err += bytes))
    await new Promise(resolve => child.once('close', resolve))
    expect(out).toBe('word word 0\n')
    expect(err).not.toMatch(/EPIPE|Error/)
  })
})

describe('tail, show, tasks, agents, cancel', () => {
  test('waits lists what turns wait for, answer responds, and a response that does not fit leaves the wait open', async () => {
    const { task } = await platform.client.createTask({ agent: 'clerk', input: 'a refund' })
    const list = () => rivulet('waits', '--task', task.id)
    await until('the form is open', async () => (await list()).stdout.includes('Order to refund'))
    const wrong = await rivulet('answer', task.id, 'order', 'accept', '--content', '{"number":"A-7"}')
    expect([wrong.code, wrong.stderr]).toEqual([1, expect.stringContaining('amount')])
    const right = await rivulet('answer', task.id, 'order', 'accept', '--content', '{"number":"A-7","amount":42}')
    expect(right).toMatchObject({ code: 0, stdout: 'order: accept\n' })
    await until('the approval is open', async () => (await list()).stdout.includes('finance'))
    expect((await rivulet('answer', task.id, 'refund', 'decline', '--comment', 'too much')).stdout).toBe('refund: decline\n')
    await platform.client.waitForEnd(task.id)
    expect((await platform.client.messages(task.id)).at(-1)?.content).toMatchObject({ text: 'Not refunded: too much.' })
    expect((await list()).stdout).not.toContain('refund ')
    expect((await rivulet('answer', task.id, 'refund', 'accept')).code).toBe(1)
  })

  test('retry runs the last turn again; change and export do what they say', async () => {
    const { task } = await platform.client.finishedTask({ agent: 'echo', input: 'again', metadata: { old: 'x' } })
    expect(await rivulet('retry', task.id)).toMatchObject({ code: 0, stdout: 'again\n' })
    expect((await rivulet('change', task.id, '--name', 'changed', '--metadata', 'new=y', '--metadata', 'old=')).stdout).toBe('changed\n')
    const { stdout } = await rivulet('export', task.id)
    const exported = lines(stdout)
    expect(exported.map(({ type }) => type)).toEqual(['task', 'turn', 'turn', 'message', 'message', 'message', 'message', 'usage'])
    expect(exported[0]).toMatchObject({ task: { name: 'changed', metadata: { new: 'y' } } })
  })

  test('state prints what the agent keeps, and replaces it where its version is known', async () => {
    const { task } = await platform.client.createTask({ agent: 'scripted', params: { steps: [{ state: { value: { n: 1 } } }] } })
    await platform.client.waitForEnd(task.id)
    expect((await rivulet('state', task.id)).stdout).toBe('version 1\n{\n  "n": 1\n}\n')
    expect(JSON.parse((await rivulet('state', task.id, '--set', '[2]', '--if-version', '1', '--json')).stdout)).toEqual({
      version: 2,
      value: [2],
    })
    expect(await rivulet('state', task.id, '--set', '3', '--if-version', '1')).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('version 2'),
    })
    expect(await rivulet('state', task.id, '--set', 'no')).toMatchObject({ code: 2 })
  })

  test('a pipe that is read late gets all of it', async () => {
    const said = 'w'.repeat(600_000)
    const { task } = await platform.client.finishedTask({ agent: 'scripted', params: { steps: [say(0, said)] } })
    const late = async (...args: string[]) => {
      const child = spawn(process.execPath, cliArguments([...args, task.id, '--url', platform.url]), {
        stdio: ['ignore', 'pipe', 'inherit'],
      })
      // The test does not read before the pipe is full.
      await once(child.stdout, 'readable')
      let out = ''
      for await (const piece of child.stdout.setEncoding('utf8')) out += piece
      return out
    }
    expect(JSON.parse(await late('show', '--json')).messages[0].content.text).toBe(said)
    expect(await late('tail')).toBe(`${said}\n`)
    expect(lines(await late('tail', '--json')).at(-1)?.type).toBe('end')
    expect(await late('tail', '--raw')).toContain('event: end\n')
  })

  test('a task whose log has expired is printed from its rows', async () => {
    const { task } = await platform.client.finishedTask({ agent: 'echo', input: 'hi' })
    await platform.redis.del(platform.keys.stream(task.id), platform.keys.state(task.id))
    expect(await rivulet('tail', task.id)).toMatchObject({ code: 0, stdout: '› hi\nhi\n' })
    const { code, stdout } = await rivulet('tail', task.id, '--json')
    expect([code, lines(stdout).map(({ type }) => type)]).toEqual([0, ['snapshot', 'caught_up', 'end']])
  })

  test('tail tells a task from its beginning, --after only the rest, --json every event, --format every chunk, --raw every byte', async () => {
    const { task } = await platform.client.finishedTask({
      agent: 'scripted',
      input: 'hi',
      // A notice between two words of a message, because the worker merges deltas that wait together.
      params: { steps: [say(0, 'one '), { custom: { name: 'pause', data: 0 } }, say(0, 'two'), say(1, 'three')] },
    })
    expect((await rivulet('tail', task.id)).stdout).toBe('› hi\none two\nthree\n')
    const log = await platform.log(task.id)
    const middle = log.find(({ event }) => event.type === 'message.delta')?.cursor ?? ''
    expect((await rivulet('tail', task.id, '--after', middle)).stdout).toBe('two\nthree\n')

    const all = lines((await rivulet('tail', task.id, '--json')).stdout)
    expect(all.filter(({ type }) => type !== 'caught_up' && type !== 'end').map(({ cursor }) => cursor)).toEqual(
      log.map(({ cursor }) => cursor),
    )
    const later = lines((await rivulet('tail', task.id, '--json', '--after', middle)).stdout)
    expect(later.map(({ cursor }) => cursor)).not.toContain(middle)
    expect(later.length).toBeLessThan(all.length)

    const chunks = lines((await rivulet('tail', task.id, '--format', 'mini-claw-code')).stdout)
    expect(chunks.map(({ type, text }) => [type, text])).toEqual([
      ['TextDelta', 'one two'],
      ['TextDelta', 'three'],
      ['Done', undefined],
    ])

    const { stdout: raw, code } = await rivulet('tail', task.id, '--raw')
    expect(raw).toMatch(/event: turn\.queued\ndata: {.*\nid: \d+-\d+\n\n[\s\S]*event: end\n/)
    expect(code).toBe(0)
  })

  test('watch with ids prints the events of these tasks until they have ended, for people and for programs', async () => {
    const tasks = await Promise.all(['one', 'two'].map(input => platform.client.finishedTask({ agent: 'echo', input })))
    const ids = tasks.map(({ task }) => task.id)
    const lines = (await rivulet('watch', ...ids, '--json')).stdout
      .trimEnd()
      .split('\n')
      .map(line => JSON.parse(line))
    for (const id of ids) {
      const own = lines.filter(line => line.id === id).map(({ event }) => event.type)
      expect(own).toEqual(['snapshot', 'caught_up', 'end'])
    }
    const { code, stdout } = await rivulet('watch', ...ids)
    expect([code, stdout.match(/ snapshot +\S+ completed/g)?.length, stdout.match(/ end /g)?.length]).toEqual([0, 2, 2])
    expect(await rivulet('watch', 'nonsense')).toMatchObject({ code: 2 })
  })

  test('watch without ids follows the feed from a place on, by type, until it is interrupted', async () => {
    const { next } = (await (await fetch(`${platform.url}/v1/feed?limit=1`)).json()) as { next: string }
    const { task } = await platform.client.finishedTask({ agent: 'echo', input: 'watched' })
    const command = ['watch', '--after', next, '--type', 'turn.finished', '--json', '--url', platform.url]
    const child = spawn(process.execPath, cliArguments(command))
    let out = ''
    child.stdout.setEncoding('utf8').on('data', (piece: string) => (out += piece))
    await until('the end of the turn is printed', () => out.includes(task.id) && out.endsWith('\n'))
    child.kill('SIGINT')
    await once(child, 'close')
    const entries = out
      .trimEnd()
      .split('\n')
      .map(line => JSON.parse(line))
    expect(new Set(entries.map(({ type }) => type))).toEqual(new Set(['turn.finished']))
    expect(entries.find(entry => entry.task === task.id)).toMatchObject({ status: 'completed', turn: 1 })
  })

  test('tail exits as the task ended', async () => {
    const { task } = await platform.client.finishedTask({ agent: 'scripted', params: { steps: [fail('no')] }, maxAttempts: 1 })
    expect((await rivulet('tail', task.id)).code).toBe(1)
    expect((await rivulet('tail', task.id, '--json')).code).toBe(1)
    expect((await rivulet('tail', task.id, '--raw')).code).toBe(1)
  })

  test('show tells what a task is, for people and for programs', async () => {
    const { task } = await platform.client.finishedTask({ agent: 'echo', input: 'hi', name: 'shown', metadata: { user: 'ada' } })
    const { stdout } = await rivulet('show', task.id)
    expect(stdout).toContain(`task     ${task.id}\nagent    echo\nstatus   completed\n`)
    expect(stdout).toMatch(/turn {2}status {5}attempt {2}took +tokens +cost +error\n1 {5}completed {2}1/)
    expect(stdout.endsWith('› hi\nhi\n')).toBe(true)
    const detail: { task: Task; turns: Turn[]; messages: Message[] } = JSON.parse((await rivulet('show', task.id, '--json')).stdout)
    expect(detail).toMatchObject({ task: { id: task.id }, turns: [{ number: 1 }], messages: [{ author: 'user' }, { author: 'agent' }] })
  })

  test('show tells when a delayed task starts', async () => {
    const { task } = await platform.client.createTask({ agent: 'echo', input: 'later', delayMs: 3_600_000 })
    expect((await rivulet('show', task.id)).stdout).toMatch(/\n1 {5}starts in (59 m \d+ s|1 h 0 m) {2}0/)
    await platform.client.cancel(task.id)
  })

  test('tasks finds by agent, status, name and metadata, page by page', async () => {
    await platform.client.finishedTask({ agent: 'echo', input: 'a', name: 'found', metadata: { user: 'grace' } })
    await platform.client.finishedTask({ agent: 'echo', input: 'b', metadata: { user: 'grace' } })
    const found = await rivulet('tasks', '--agent', 'echo', '--status', 'completed', '--name', 'found', '--metadata', 'user=grace')
    expect(found.stdout).toMatch(
      /^id +agent +status +changed +tokens +cost +name\n[0-9a-f-]{36} {2}echo {3}completed {2}.+ago +found\n$|now +found\n$/,
    )
    const first = JSON.parse((await rivulet('tasks', '--metadata', 'user=grace', '--limit', '1', '--json')).stdout)
    const second = JSON.parse(
      (await rivulet('tasks', '--metadata', 'user=grace', '--limit', '1', '--cursor', first.nextCursor, '--json')).stdout,
    )
    expect(second.data).toMatchObject([{ name: 'found' }])
    expect((await rivulet('tasks', '--name', 'unused name')).stdout).toBe('no tasks\n')
    const { task } = await platform.client.finishedTask({ agent: 'echo', input: 'a heron by the river' })
    const search = async (text: string) => JSON.parse((await rivulet('tasks', '--q', text, '--json')).stdout).data
    expect(await search('HERON by')).toMatchObject([{ id: task.id }])
    expect(await search('no heron')).toEqual([])
  })

  test('tasks and show tell when a delayed task starts', async () => {
    const { task } = await platform.client.createTask({ agent: 'echo', input: 'later', name: 'delayed', delayMs: 3_600_000 })
    for (const args of [
      ['tasks', '--name', 'delayed'],
      ['show', task.id],
    ])
      expect((await rivulet(...args)).stdout).toMatch(/ starts in (59 m \d+ s|1 h 0 m) /)
    await platform.client.cancel(task.id)
  })

  test('tasks shows what a task has used; --parent lists the copies of a task, and send --after discards its later turns', async () => {
    const { task } = await platform.client.finishedTask({ agent: 'echo', input: 'one', name: 'root of a fork' })
    await platform.pg.query('update turns set usage_total = $2, cost = 0.25 where task = $1', [
      task.id,
      { inputTokens: 1_200, outputTokens: 34 },
    ])
    expect((await rivulet('tasks', '--name', 'root of a fork')).stdout).toMatch(/ 1,234 +\$0\.25 +root of a fork\n$/)
    const copy = (await rivulet('fork', task.id)).stdout.trim()
    expect(JSON.parse((await rivulet('tasks', '--parent', task.id, '--json')).stdout).data).toMatchObject([{ id: copy, parent: task.id }])
    expect(await rivulet('send', task.id, 'edited', '--after', '0')).toMatchObject({ code: 0, stdout: 'edited\n' })
    expect(await platform.client.waitForEnd(task.id)).toMatchObject({ turns: [{ status: 'discarded' }, { status: 'completed' }] })
    expect(await rivulet('send', task.id, 'x', '--after', 'one')).toMatchObject({ code: 2 })
  })

  test('schedules are created, listed, paused, resumed, triggered and deleted', async () => {
    const line = ['0 7 * * 1-5', 'good morning', '--timezone', 'Europe/Berlin', '--json']
    const { schedule } = JSON.parse((await rivulet('schedules', 'create', 'echo', ...line)).stdout)
    expect((await rivulet('schedules')).stdout).toMatch(/^id +agent +cron .*\n\S+ +echo +0 7 \* \* 1-5 +Europe\/Berlin +\d{4}-/)
    expect((await rivulet('schedules', 'pause', schedule.id)).stdout).toBe(`${schedule.id} is paused\n`)
    expect((await rivulet('schedules', 'resume', schedule.id)).stdout).toBe(`${schedule.id} is active\n`)
    const task = (await rivulet('schedules', 'trigger', schedule.id)).stdout.trim()
    expect((await platform.client.waitForEnd(task)).task.status).toBe('completed')
    expect((await rivulet('schedules', 'history', schedule.id)).stdout).toMatch(new RegExp(`started +${task} +1\n$`))
    expect((await rivulet('schedules', 'delete', schedule.id)).stdout).toBe(`${schedule.id} is deleted\n`)
    expect((await rivulet('schedules')).stdout).toBe('no schedules\n')
    expect(await rivulet('schedules', 'create', 'echo', '99 * * * *')).toMatchObject({ code: 1, stderr: expect.stringContaining('minute') })
  })

  test('webhooks are created with a secret that is alone on stdout, listed, paused, resumed, rotated and deleted', async () => {
    const { stdout, stderr } = await rivulet('webhooks', 'create', 'https://hook.invalid/x', '--event', 'turn.finished', '--agent', 'idle')
    expect(stdout).toMatch(/^whsec_\S+\n$/)
    const [id = ''] = /[0-9a-f-]{36}/.exec(stderr) ?? []
    expect((await rivulet('webhooks')).stdout).toMatch(new RegExp(`\n${id} +active +idle +turn.finished +https://hook.invalid/x\n$`))
    expect((await rivulet('webhooks', 'pause', id)).stdout).toBe(`${id} is disabled\n`)
    expect((await rivulet('webhooks', 'resume', id)).stdout).toBe(`${id} is active\n`)
    const rotated = (await rivulet('webhooks', 'rotate', id)).stdout
    expect([rotated.startsWith('whsec_'), rotated === stdout]).toEqual([true, false])
    expect((await rivulet('webhooks', 'deliveries', id)).stdout).toBe('no deliveries\n')
    expect((await rivulet('webhooks', 'delete', id)).stdout).toBe(`${id} is deleted\n`)
    expect((await rivulet('webhooks')).stdout).toBe('no webhooks\n')
  })

  test('agents lists the agents that have workers', async () => {
    // A task of a test before may still run, because its reader left early.
    await until('no turn of echo runs', async () => /echo +1 +0 +0 /.test((await rivulet('agents')).stdout))
    expect((await rivulet('agents')).stdout).toMatch(
      /^agent +workers +queued +running +description\n[\s\S]*echo +1 +0 +0 +Says its input back/,
    )
    const { data } = JSON.parse((await rivulet('agents', '--json')).stdout)
    expect(data).toContainEqual(expect.objectContaining({ name: 'echo', workers: 1 }))
  })

  test('workers lists the workers with their turns, versions what is left of each version', async () => {
    expect((await rivulet('workers')).stdout).toMatch(
      /^worker +state +version +turns +agents\n[\s\S]*\S+ +live +0\.2\.0 +\d+ of 20 +.*echo/,
    )
    const { stdout } = await rivulet('versions')
    expect(stdout).toMatch(
      /^version +workers +queued +running +waiting +drained +agents\n[\s\S]*0\.2\.0 +\d+ +\d+ +\d+ +\d+ +(yes|no) +.*echo/,
    )
    expect(JSON.parse((await rivulet('versions', '--json')).stdout).data).toContainEqual(
      expect.objectContaining({ version: '0.2.0', workers: expect.any(Number), isDrained: expect.any(Boolean) }),
    )
  })

  test('agents are paused and resumed, and limits are set, shown and removed', async () => {
    expect((await rivulet('agents', 'pause', 'assistant')).stdout).toBe('assistant is paused\n')
    expect((await rivulet('agents')).stdout).toContain('assistant (paused)')
    expect((await rivulet('agents', 'resume', 'assistant')).stdout).toBe('assistant is active\n')
    expect(await rivulet('agents', 'remove', 'assistant')).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('workers run this agent'),
    })
    const limits = ['--concurrency', '9', '--per-key', '3', '--per-minute', '60', '--weight', 'gold=2', '--json']
    const { stdout } = await rivulet('limits', 'set', 'assistant', ...limits)
    expect(JSON.parse(stdout).limits).toEqual({ agent: 'assistant', concurrency: 9, perKey: 3, perMinute: 60, weights: { gold: 2 } })
    expect((await rivulet('limits')).stdout).toMatch(/^agent .*\nassistant +9 +3 +60 +gold=2\n$/)
    expect((await rivulet('limits', 'remove', 'assistant')).stdout).toBe('assistant has no limits\n')
    expect((await rivulet('limits')).stdout).toBe('no limits\n')
    expect(await rivulet('limits', 'set', 'assistant', '--per-key', '0')).toMatchObject({ code: 2 })
  })

  test('cancel ends a task, and tells when it had ended before', async () => {
    const { task } = await platform.client.createTask({ agent: 'scripted', params: { steps: [repeat(100, say(0, '.'), rest(1_000))] } })
    expect(JSON.parse((await rivulet('cancel', task.id, '--reason', 'enough', '--json')).stdout).task.status).toBe('canceled')
    const { task: ended } = await platform.client.finishedTask({ agent: 'echo', input: 'x' })
    expect(await rivulet('cancel', ended.id)).toMatchObject({ code: 0, stdout: 'it had ended before: completed\n' })
  })
})

describe('what cannot work', () => {
  test('a command line that is wrong: 2, and a sentence on stderr', async () => {
    const { code, stdout, stderr } = await runCli(['tasks', '--status', 'tired'])
    expect([code, stdout]).toEqual([2, ''])
    expect(stderr).toMatch(/^error: [^\n]*Allowed choices[^\n]*\n$/)
  })

  test('chat without a terminal: 2, and which command a script uses', async () => {
    const { code, stderr } = await rivulet('chat', 'echo')
    expect([code, stderr]).toEqual([2, expect.stringContaining('in a script, use rivulet run')])
  })

  test('no server: how to start one', async () => {
    const url = `http://127.0.0.1:${await freePort()}`
    expect(await runCli(['run', 'echo', 'x', '--url', url])).toEqual({
      ...{ code: 1, stdout: '', stderr: `No Rivulet at ${url}: start one with npm start\n` },
    })
  })

  test('an unknown agent: 1, with the message of the server', async () => {
    expect(await rivulet('run', 'unknown', 'x')).toEqual({ code: 1, stdout: '', stderr: 'No worker has ever registered this agent\n' })
  })
})

test('color in a pipe only if it is forced; RIVULET_URL sets the address', async () => {
  const env = { FORCE_COLOR: '1', RIVULET_URL: platform.url }
  expect((await runCli(['run', 'echo', 'x'], { env })).stderr).toContain(`${esc}[2mcompleted`)
})

test('migrate tells programs, too', async () => {
  const { code, stdout } = await runCli(['migrate', '--json'], { env: { DATABASE_URL: platform.databaseUrl } })
  expect([code, JSON.parse(stdout)]).toEqual([0, { isUpToDate: true }])
})

test('doctor: what is there, and that it is enough', async () => {
  const env = { PORT: await freePort(), REDIS_URL: inject('redisUrl'), DATABASE_URL: platform.databaseUrl }
  const { code, stdout } = await rivuletWith({ env }, 'doctor')
  expect(code).toBe(0)
  expect(stdout).toMatch(
    /✓ node .*\n✓ packages .*\n[✓–] python .*\n✓ data .*\n✓ redis .*\n✓ postgres .*\n✓ port .*\n✓ platform +\S+ is ready, with .*echo/,
  )
})

function rivulet(...args: string[]): Promise<CliResult> {
  return rivuletWith({}, ...args)
}

function rivuletWith(options: { env?: Record<string, string>; input?: string }, ...args: string[]): Promise<CliResult> {
  return runCli([...args, '--url', platform.url], options)
}

function runScript(steps: Step[], ...args: string[]): Promise<CliResult> {
  return rivulet('run', 'scripted', '--params', script(steps), ...args)
}

function script(steps: Step[]): string {
  return JSON.stringify({ steps })
}

function taskNamed(name: string): Promise<Task> {
  return until(`a task is named ${name}`, async () => {
    const { body } = await platform.client.get<{ data: Task[] }>(`/v1/tasks?name=${encodeURIComponent(name)}`)
    return body.data[0]
  })
}

function lines(text: string): { type: string; cursor: string; status?: string; text?: string }[] {
  return text
    .trim()
    .split('\n')
    .map(line => JSON.parse(line))
}
