/** Children: tasks that a turn spawns. Its worker is free while it waits for them, and a tree ends as a whole. */
import { agentTool, call, scriptedModel, say as utter } from '@rivulet/agent'
import { createClient } from '@rivulet/client'
import type { Event, Task } from '@rivulet/protocol'
import { defineAgent, RivuletError } from '@rivulet/worker'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { faultsOf } from '../support/judge/task-laws.ts'
import { startOwnWorker } from '../support/platform/own-worker.ts'
import { type Platform, startPlatform } from '../support/platform/platform.ts'
import { until } from '../support/until.ts'

let platform: Platform

beforeAll(async () => {
  platform = await startPlatform({ workers: 0 })
  await platform.client.post('/internal/hello', { worker: 'none', agents: [{ name: 'idle', description: '' }] })
})
afterAll(() => platform.close())

const scout = defineAgent('scout', turn => turn.send(`${turn.text} found`).then(() => {}))
const failing = defineAgent('failing', async () => {
  throw new RivuletError('model_refused', 'no luck')
})
const sleeper = defineAgent('sleeper', turn => turn.sleep('long', { for: '1h' }))

const childrenOf = async (task: string) => (await createClient({ url: platform.url }).tasks.list({ parent: task })).data
const told = async (task: string, type: Event['type']) => (await platform.log(task)).filter(({ event }) => event.type === type)
const toldAny = async (task: string, type: Event['type']) => {
  const found = await told(task, type)
  return found.length > 0 && found
}

test('a parent waits for its children without a worker, in one attempt, and a retry has the same children', async () => {
  const parent = defineAgent('parent', async turn => {
    await turn.send('before')
    const names = ['a', 'b']
    const results = await turn.spawnAll(names.map(name => ({ name, agent: 'scout', input: name })))
    const last = await turn.spawn('d', { agent: 'failing' })
    await turn.step('fails once', async () => {
      if (turn.attempt === 1) throw new Error('again')
    })
    await turn.send([...results.map(({ text }) => text), `${last.status}: ${last.error?.message}`].join(', '))
  })
  // One place for all: a parent that held it would wait for ever.
  await startOwnWorker(platform, [parent, scout, failing], { concurrency: 1 })
  const { task } = await platform.client.createTask({ agent: 'parent' })
  const { turns } = await platform.client.waitForEnd(task.id)
  expect(turns).toMatchObject([{ status: 'completed', attempt: 2 }])
  const words = (await platform.client.messages(task.id)).map(({ content }) => (content.type === 'text' ? content.text : ''))
  expect(words).toEqual(['before', 'a found, b found, failed: no luck'])
  expect(turns[0]?.waits).toMatchObject(['a', 'b', 'd'].map(name => ({ name, kind: 'task', status: 'answered' })))
  const children = await childrenOf(task.id)
  expect(children.map(({ agent, parent: of }) => [agent, of])).toEqual(['failing', 'scout', 'scout'].map(agent => [agent, task.id]))
  await until('the log has the end of every child', async () => (await told(task.id, 'child.finished')).length === 3)
  expect(await told(task.id, 'child.started')).toHaveLength(3)
  expect(await faultsOf(platform, task.id)).toEqual([])
  for (const child of children) expect(await faultsOf(platform, child.id)).toEqual([])
  expect(await (await fetch(`${platform.url}/metrics`)).text()).toMatch(/rivulet_children_spawned_total\{agent="\w+"\} [1-9]/)
})

test('the cancel of a root ends its whole tree, each task once', async () => {
  const branch = defineAgent('branch', async turn => {
    await turn.spawn('leaf', { agent: 'sleeper' })
  })
  const root = defineAgent('root', async turn => {
    await turn.spawnAll([1, 2].map(i => ({ name: `branch ${i}`, agent: 'branch' })))
  })
  await startOwnWorker(platform, [root, branch, sleeper])
  const { task } = await platform.client.createTask({ agent: 'root' })
  const tree = await until('the tree is grown', async () => {
    const branches = await childrenOf(task.id)
    const leaves = (await Promise.all(branches.map(({ id }) => childrenOf(id)))).flat()
    return leaves.length === 2 && leaves.every(({ status }) => status === 'waiting') && [task, ...branches, ...leaves]
  })
  await platform.client.cancel(task.id, 'enough')
  for (const { id } of tree) {
    const { task: ended } = await platform.client.waitForEnd(id)
    expect(ended.status).toBe('canceled')
    expect(await faultsOf(platform, id)).toEqual([])
    expect(await told(id, 'turn.finished')).toHaveLength(1)
  }
})

test('a detached child outlives its parent, unless it is to end with it, however the parent ends', async () => {
  const parent = defineAgent('leaving', async turn => {
    await turn.spawn('kept', { agent: 'sleeper', detached: true })
    await turn.spawn('ended', { agent: 'sleeper', detached: true, onParentEnd: 'cancel' })
    if (turn.text === 'fail') throw new RivuletError('model_refused', 'now')
  })
  await startOwnWorker(platform, [parent, sleeper])
  for (const input of ['end', 'fail']) {
    const { task } = await platform.client.createTask({ agent: 'leaving', input })
    await platform.client.waitForEnd(task.id)
    const statuses = async () => (await childrenOf(task.id)).map(({ status }) => status).sort()
    await until('one has ended, and one waits', async () => (await statuses()).join() === 'canceled,waiting')
  }
})

test('a tree has limits: recursion ends, and a spawn beyond them is an error of its own', async () => {
  const recursive = defineAgent('recursive', async turn => {
    const [child] = await turn.spawnEach([{ name: 'again', agent: 'recursive' }])
    await turn.send(child && 'code' in child ? child.code : `one below ${child?.text}`)
  })
  const many = defineAgent('many', async turn => {
    const unknown = await turn.spawnEach([{ name: 'x', agent: 'unknown-agent' }])
    const all = await turn.spawnEach(Array.from({ length: 18 }, (_, i) => ({ name: `${i}`, agent: 'idle', detached: true })))
    await turn.send(JSON.stringify([...unknown, ...all].flatMap(child => ('code' in child ? [child.code] : []))))
  })
  const inStep = defineAgent('in-step', turn => turn.step('no', () => turn.spawn('x', { agent: 'scout' })).then(() => {}))
  const twice = defineAgent('twice', async turn => {
    await turn.spawn('x', { agent: 'scout' })
    await turn.spawn('x', { agent: 'scout' })
  })
  await startOwnWorker(platform, [recursive, many, inStep, twice, scout])
  const textOf = async (agent: string) => (await createClient({ url: platform.url }).run({ agent })).text
  expect(await textOf('recursive')).toBe('one below one below one below too_many_children')
  expect(JSON.parse(await textOf('many'))).toEqual(['unknown_agent', 'too_many_children', 'too_many_children'])
  for (const agent of ['in-step', 'twice']) await expect(textOf(agent)).rejects.toMatchObject({ code: 'bad_call' })
  const gone = {
    turnId: crypto.randomUUID(),
    claimId: 'c',
    children: [{ name: 'x', agent: 'scout', detached: false, onParentEnd: 'cancel' }],
  }
  expect((await platform.client.post('/internal/spawn', gone)).body).toEqual({ result: 'superseded' })
})

test('a tool that is an agent runs as a child, with its calls side by side; what it fails with is an error of the tool', async () => {
  const tools = [agentTool('scout', { description: 'Looks around' }), agentTool('failing', { description: 'Fails' })]
  const model = scriptedModel([
    [utter('Let me see.'), call('scout', { input: 'left' }), call('scout', { input: 'right' }), call('failing', { input: 'x' })],
    'Done.',
  ])
  const asker = defineAgent('asker', async turn => void (await turn.run({ model, tools })))
  await startOwnWorker(platform, [asker, scout, failing], { concurrency: 1 })
  const { task } = await platform.client.createTask({ agent: 'asker', input: 'look' })
  await platform.client.waitForEnd(task.id)
  const responses = (await platform.client.messages(task.id)).flatMap(({ content }) => (content.type === 'tool_response' ? [content] : []))
  expect(responses.map(({ content, isError }) => [content, isError])).toEqual([
    ['left found', false],
    ['right found', false],
    ['The agent failed: no luck', true],
  ])
  const children: Task[] = await childrenOf(task.id)
  expect(children.map(({ agent }) => agent)).toEqual(['failing', 'scout', 'scout'])
  expect(await faultsOf(platform, task.id)).toEqual([])
})

test('a tree has the budget of its root: a child that finds it used fails, and so does the next call of a model', async () => {
  const spender = defineAgent('spender', async turn => turn.usage.add({ inputTokens: 100 }))
  const parent = defineAgent('paying', async turn => {
    const results = [await turn.spawn('first', { agent: 'spender' }), await turn.spawn('second', { agent: 'spender' })]
    await turn.send(results.map(({ status, error }) => error?.code ?? status).join())
    turn.usage.checkBudget()
  })
  await startOwnWorker(platform, [parent, spender])
  const { task } = await platform.client.createTask({ agent: 'paying', budget: { tokens: 50 } })
  const { turns } = await platform.client.waitForEnd(task.id)
  expect(turns).toMatchObject([{ status: 'failed', attempt: 1, error: { code: 'budget_exceeded' } }])
  expect((await platform.client.messages(task.id))[0]?.content).toMatchObject({ text: 'completed,budget_exceeded' })
  const { rows } = await platform.pg.query('select root, task from usage where root = $1', [task.id])
  expect(rows).toEqual([{ root: task.id, task: expect.not.stringContaining(task.id) }])
})

test('a child can read the files of its parent, and keeps them', async () => {
  const reader = defineAgent('reader', async turn =>
    turn.send(Buffer.from(await (await turn.readFile(turn.text)).bytes()).toString()).then(() => {}),
  )
  const parent = defineAgent('with-file', async turn => {
    const file = turn.input && 'file' in turn.input ? String(turn.input.file) : ''
    await turn.send((await turn.spawn('x', { agent: 'reader', input: file })).text)
  })
  await startOwnWorker(platform, [parent, reader])
  const client = createClient({ url: platform.url })
  const file = await client.files.upload(new Blob(['of the parent'], { type: 'text/plain' }), { name: 'a.txt' })
  const { text: said } = await client.run({ agent: 'with-file', input: { type: 'media', mimeType: 'text/plain', file: file.id } })
  expect(said).toBe('of the parent')
})

test('a child that gets more input later is a conversation of its own', async () => {
  const parent = defineAgent('once', async turn => turn.send((await turn.spawn('x', { agent: 'scout', input: 'it' })).text).then(() => {}))
  await startOwnWorker(platform, [parent, scout])
  const { task } = await platform.client.createTask({ agent: 'once' })
  await platform.client.waitForEnd(task.id)
  const [child] = await childrenOf(task.id)
  await platform.client.addTurn(child?.id ?? '', { input: 'more' })
  await platform.client.waitForEnd(child?.id ?? '')
  expect(await faultsOf(platform, child?.id ?? '')).toEqual([])
  expect(await until('the end of the child is in the log', () => toldAny(task.id, 'child.finished'))).toHaveLength(1)
  expect((await platform.client.remove(child?.id ?? '')).status).toBe(204)
  expect((await platform.client.remove(task.id)).status).toBe(204)
  expect((await platform.pg.query('select from children where root = $1', [task.id])).rowCount).toBe(0)
})
