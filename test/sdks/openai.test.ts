/** OpenAI's SDK, unmodified, with Rivulet as its base URL: responses and models. Chat completions are in openai-chat.test.ts. */
import { Agent, OpenAIProvider, Runner, tool } from '@openai/agents'
import { call, scriptedModel, say as speak } from '@rivulet/agent'
import { defineAgent, delta } from '@rivulet/worker'
import OpenAI, { APIError } from 'openai'
import type { Response, ResponseStreamEvent } from 'openai/resources/responses/responses'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { z } from 'zod'
import { halting } from '../support/agents/halting-agent.ts'
import { done, fail, repeat, rest, type Step, say } from '../support/agents/scripts.ts'
import { createGate } from '../support/gate.ts'
import { startOwnWorker } from '../support/platform/own-worker.ts'
import { type Platform, startPlatform } from '../support/platform/platform.ts'
import { until } from '../support/until.ts'
import { guide, paid, pay, registrar, shopper } from './asking-agents.ts'
import { everyContent } from './every-content.ts'

let platform: Platform

beforeAll(async () => {
  platform = await startPlatform({ apis: 2, workers: 1 })
})
afterAll(() => platform.close())

/** Asks twice: for two payments at once, and for one more. */
const payer = defineAgent('payer', async turn => {
  const model = scriptedModel(({ messages }) => {
    const calls = messages.filter(({ content }) => content.type === 'tool_response').length
    if (calls === 0) return [speak('I will pay.'), call('pay', { amount: 1 }), call('pay', { amount: 2 })]
    return calls < 3 ? [speak('One more.'), call('pay', { amount: 3 })] : [speak('Done.')]
  })
  await turn.run({ model, tools: [pay], approve: () => ({ ask: { hold: 0 } }) })
})

const steps = everyContent('c2')

const output = [
  { type: 'reasoning', summary: [{ text: 'Hm ' }], content: [{ text: 'so.' }], status: 'completed' },
  { type: 'message', content: [{ text: 'word word word word word ' }], status: 'completed' },
  { type: 'mcp_call', name: 'weather', arguments: '{"city":"Oslo"}', output: '{"rain":true}', error: null, status: 'completed' },
  { type: 'mcp_call', name: 'fail', output: null, error: { type: 'mcp_tool_execution_error', content: 'no' }, status: 'failed' },
  { type: 'message', content: [{ text: '{"whole":true}' }] },
  { type: 'image_generation_call', result: 'AAEC' },
  { type: 'message', content: [{ text: 'The final word.' }] },
  { type: 'message', content: [{ text: 'Bye.' }] },
]

describe('a response', () => {
  test('is streamed, and is what is stored', async () => {
    const stream = clientOf().responses.stream(bodyOf(steps))
    const deltas: string[] = []
    stream.on('response.output_text.delta', ({ delta }) => deltas.push(delta))
    const final = await stream.finalResponse()
    expect(final).toMatchObject({ status: 'completed', model: 'scripted', metadata: { who: 'me' }, output })
    expect(final.output_text).toBe('word word word word word {"whole":true}The final word.Bye.')
    expect(deltas.slice(0, 5).join('')).toContain('word word')
    expect(await clientOf(1).responses.retrieve(final.id)).toEqual(plain(final))
    const [task = ''] = final.id.split('.')
    expect(final.conversation?.id).toBe(task)
    expect((await platform.client.detail(task)).task).toMatchObject({ metadata: { who: 'me' }, status: 'completed' })
  })

  test('comes whole to a caller that waits, and at once to one that does not', async () => {
    const waited = await clientOf().responses.create(bodyOf([rest(50), say(0, 'Done.')]))
    expect([waited.status, waited.output_text]).toEqual(['completed', 'Done.'])
    const queued = await clientOf().responses.create({ ...bodyOf([rest(50), say(0, 'Done.')]), background: true })
    expect(['queued', 'in_progress']).toContain(queued.status)
    const ended = await until('it is there', async () => {
      const found = await clientOf(1).responses.retrieve(queued.id)
      return found.status === 'completed' && found
    })
    expect(ended.output_text).toBe('Done.')
  })

  test('cut after any chunk and resumed, at another API, lacks nothing and doubles nothing', async () => {
    const created = await clientOf().responses.create({ ...bodyOf(steps), background: true })
    const whole = await all(await clientOf().responses.retrieve(created.id, { stream: true }))
    expect(whole.at(-1)?.type).toBe('response.completed')
    for (const [place, { sequence_number: after }] of whole.entries()) {
      const rest = await all(await clientOf(place % 2).responses.retrieve(created.id, { stream: true, starting_after: after }))
      expect([place, rest]).toEqual([place, whole.slice(place + 1)])
    }
  })

  test.each(['SIGKILL', 'SIGTERM'] as const)('is resumed while it runs, after its API got %s', async signal => {
    const own = await startPlatform({ apis: 2, workers: 1 })
    onTestFinished(() => own.close())
    // The first API serves the worker, which has to go on.
    const [second, first] = own.urls.map(url => new OpenAI({ apiKey: 'none', baseURL: `${url}/openai/v1`, maxRetries: 0 }))
    if (!first || !second) throw new Error('There are two APIs')
    const events: ResponseStreamEvent[] = []
    const stream = await first.responses.create({ ...bodyOf([repeat(40, say(0, 'word '), rest(50))]), stream: true })
    const broken = (async () => {
      for await (const event of stream) {
        events.push(event)
        if (events.filter(({ type }) => type === 'response.output_text.delta').length === 5) void own.apis[1]?.kill(signal)
      }
    })()
    await expect(broken).rejects.toThrow()
    const [created] = events
    const id = created?.type === 'response.created' ? created.response.id : ''
    const rest_ = await all(await second.responses.retrieve(id, { stream: true, starting_after: events.at(-1)?.sequence_number ?? 0 }))
    expect(deltasIn([...events, ...rest_])).toBe('word '.repeat(40))
    expect(rest_.at(-1)?.type).toBe('response.completed')
  })

  test('whose log is gone comes whole', async () => {
    const final = await clientOf().responses.create(bodyOf(steps))
    const [task = ''] = final.id.split('.')
    await platform.redis.del(platform.keys.stream(task), platform.keys.state(task))
    const fresh = await clientOf(1).responses.stream({ response_id: final.id }).finalResponse()
    expect(fresh).toMatchObject({ output, status: 'completed' })
    const resumed = await all(await clientOf(1).responses.retrieve(final.id, { stream: true, starting_after: 77 }))
    expect(resumed).toMatchObject([{ type: 'response.completed', sequence_number: 78, response: { output } }])
  })

  test('whose log is lost while it runs goes on, and comes whole to a client that resumes', async () => {
    const { agent, open } = await halting(platform, [delta(0, 'one ')], [delta(0, 'two')])
    const stream = clientOf().responses.stream({ model: agent, input: 'go' })
    const events: ResponseStreamEvent[] = []
    stream.on('event', event => events.push(event))
    await until('it speaks', () => deltasIn(events) === 'one ')
    const [created] = events
    const id = created?.type === 'response.created' ? created.response.id : ''
    const [task = ''] = id.split('.')
    await platform.redis.del(platform.keys.stream(task), platform.keys.state(task))
    const after = events.at(-1)?.sequence_number ?? 0
    const late = all(await clientOf(1).responses.retrieve(id, { stream: true, starting_after: after }))
    open()
    const final = await stream.finalResponse()
    plain(final)
    expect([final.status, final.output_text, deltasIn(events)]).toEqual(['completed', 'one two', 'one two'])
    expect(events.map(({ sequence_number: number }) => number)).toEqual(
      events.map(({ sequence_number: number }) => number).toSorted((a, b) => a - b),
    )
    const ended = [{ type: 'response.completed', response: { status: 'completed', output: final.output } }]
    expect(await late).toMatchObject(ended)
    for (const { sequence_number: number } of events.slice(0, -1)) {
      const rest = await all(await clientOf(1).responses.retrieve(id, { stream: true, starting_after: number }))
      expect(rest).toMatchObject(ended)
      expect(rest[0]?.sequence_number).toBeGreaterThan(number)
    }
  })

  test('that is trimmed from the log of its conversation comes whole at any API, and one behind it goes on', async () => {
    const retentionMs = 1_000
    const own = await startPlatform({ apis: 2, workers: 1, env: { LOG_RETENTION_MS: String(retentionMs) } })
    onTestFinished(() => own.close())
    const [second, third] = [createGate(), createGate()]
    const gates: Record<string, Promise<void>> = { second: second.opened, third: third.opened }
    const speaker = defineAgent('speaker', async function* ({ text }) {
      yield delta(0, `${text} `)
      await gates[text]
      yield delta(0, 'turn')
    })
    await startOwnWorker(own, [speaker])
    const [client, other] = own.urls.map(url => new OpenAI({ apiKey: 'none', baseURL: `${url}/openai/v1` }))
    if (!client || !other) throw new Error('There are two APIs')
    const say_ = (input: string) => client.responses.create({ model: 'speaker', input, conversation: 'trimmed', background: true })
    const [{ id }, , { id: running }] = [await say_('first'), await say_('second'), await say_('third')]
    const [task = ''] = id.split('.')
    const whole = await all(await client.responses.retrieve(id, { stream: true }))
    // A log is trimmed once, when the next turn starts, by the time at which the end was appended: that is later than the end in the rows.
    const loggedBy = Date.now()
    await until('its events may go', () => Date.now() - loggedBy > retentionMs)
    second.open()
    const logged = async () => new Set((await own.log(task)).map(({ event }) => event.turn))
    await until('they are gone', async () => (await logged()).has(3) && !(await logged()).has(1))
    const final = await other.responses.retrieve(id)
    expect([final.status, final.output_text]).toEqual(['completed', 'first turn'])
    expect(await all(await other.responses.retrieve(id, { stream: true }))).toMatchObject([
      { type: 'response.created' },
      { type: 'response.completed', response: { output: final.output } },
    ])
    for (const [place, { sequence_number: after }] of whole.slice(0, -1).entries()) {
      const api = [client, other][place % 2] ?? client
      const rest = await all(await api.responses.retrieve(id, { stream: true, starting_after: after }))
      expect(rest).toMatchObject([{ type: 'response.completed', response: { output: final.output } }])
      expect(rest[0]?.sequence_number).toBeGreaterThan(after)
    }
    const stream = await other.responses.retrieve(running, { stream: true })
    third.open()
    const live = await all(stream)
    expect([deltasIn(live), live.at(-1)?.type]).toEqual(['third turn', 'response.completed'])
  })

  test('resumed at a place that the log never had comes whole, also while it runs', async () => {
    const { id } = await clientOf().responses.create({ ...bodyOf([...steps, rest(500)]), background: true })
    const nowhere = (77 * 2 ** 21 + 7) * 2 ** 9
    const events = await all(await clientOf(1).responses.retrieve(id, { stream: true, starting_after: nowhere }))
    expect(events).toMatchObject([{ type: 'response.completed', response: { output } }])
    expect(events[0]?.sequence_number).toBeGreaterThan(nowhere)
  })

  test('that is tried again has the attempt that counts', async () => {
    const attempts = { 1: [say(0, 'First '), say(1, 'half'), fail('no')], 2: [say(0, 'Second try')] }
    const body = { ...bodyOf([]), params: { attempts } }
    const types: string[] = []
    const stream = clientOf().responses.stream(body as never)
    stream.on('event', ({ type }) => types.push(type))
    const final = await stream.finalResponse()
    expect([final.output_text, final.output.length]).toEqual(['Second try', 1])
    expect(types.filter(type => type === 'response.output_item.added')).toHaveLength(3)
  })

  test('has deltas that can be joined, for a client that hides retries', async () => {
    const again = [say(0, 'Second try.'), done(0), say(1, ' All of it.')]
    const attempts = { 1: [say(0, 'Second '), rest(20), fail('no')], 2: [say(0, 'Third'), rest(20), fail('no')], 3: again }
    const body = { ...bodyOf([]), params: { attempts } } as never
    const client = new OpenAI({ apiKey: 'none', baseURL: `${platform.urls[0]}/openai/v1`, defaultQuery: { retries: 'hide' } })
    const final = await client.responses.stream(body).finalResponse()
    expect(final.output_text).toBe('Second try. All of it.')
    const whole = await all(await client.responses.retrieve(final.id, { stream: true }))
    expect(deltasIn(whole)).toBe('Second try. All of it.')
    for (const [place, { sequence_number: after }] of whole.entries())
      expect(await all(await client.responses.retrieve(final.id, { stream: true, starting_after: after }))).toEqual(whole.slice(place + 1))
    await expect(clientOf().responses.retrieve(final.id, {}, { query: { retries: 'maybe' } })).rejects.toMatchObject({ status: 400 })
  })

  test('that fails, is canceled, or is cut by its length says so', async () => {
    const failed = await clientOf()
      .responses.stream(bodyOf([say(0, 'Half'), fail('no luck')]))
      .finalResponse()
    expect(failed).toMatchObject({ status: 'failed', error: { code: 'server_error' }, output: [{ status: 'incomplete' }] })
    const running = await clientOf().responses.create({ ...bodyOf([say(0, 'Half'), rest(60_000)]), background: true })
    await until('it speaks', async () => (await clientOf().responses.retrieve(running.id)).output_text === 'Half')
    const behind = await clientOf().responses.create({
      ...bodyOf([say(0, 'Next')]),
      previous_response_id: running.id,
      background: true,
    })
    const watching = clientOf(1).responses.stream({ response_id: running.id }).finalResponse()
    expect(await clientOf().responses.cancel(running.id)).toMatchObject({ status: 'cancelled', output: [{ status: 'incomplete' }] })
    expect((await watching).status).toBe('cancelled')
    expect((await clientOf().responses.cancel(running.id)).status).toBe('cancelled')
    expect((await clientOf().responses.stream({ response_id: behind.id }).finalResponse()).output_text).toBe('Next')
  })

  test('follows another one, forks where that is not the last, and follows a conversation', async () => {
    const first = await clientOf().responses.create({ model: 'echo', input: 'one' })
    const second = await clientOf().responses.create({ model: 'echo', input: 'two', previous_response_id: first.id })
    expect([second.previous_response_id, second.conversation?.id]).toEqual([first.id, first.conversation?.id])
    const other = await clientOf().responses.create({ model: 'echo', input: 'other', previous_response_id: first.id })
    expect(other.conversation?.id).not.toBe(first.conversation?.id)
    const [task = ''] = other.id.split('.')
    expect((await platform.client.messages(task)).map(({ content }) => 'text' in content && content.text)).toEqual([
      'one',
      'one',
      'other',
      'other',
    ])
    const third = await clientOf().responses.create({ model: 'echo', input: 'three', conversation: String(first.conversation?.id) })
    expect(third.previous_response_id).toBe(second.id)
    const named = await clientOf().responses.create({ model: 'echo', input: 'a', conversation: 'my-thread' })
    const again = await clientOf().responses.create({ model: 'echo', input: 'b', conversation: { id: 'my-thread' } })
    expect(again.conversation?.id).toBe(named.conversation?.id)
    const items = await clientOf().responses.inputItems.list(again.id)
    expect(items.data).toMatchObject([{ role: 'user', content: [{ type: 'input_text', text: 'b' }] }])
    await expect(clientOf().responses.delete(named.id)).rejects.toMatchObject({ status: 400 })
    await clientOf().responses.delete(other.id)
    await expect(clientOf().responses.retrieve(other.id)).rejects.toMatchObject({ status: 404 })
  })

  test('takes a history as items', async () => {
    const { id } = await clientOf().responses.create({
      model: 'echo',
      input: [
        { role: 'developer', content: 'Be brief.' },
        {
          role: 'user',
          content: [
            { type: 'input_text', text: 'One' },
            { type: 'input_text', text: 'and two.' },
          ],
        },
        { type: 'function_call', call_id: 'c', name: 'f', arguments: '{"a":1}' },
        { type: 'function_call_output', call_id: 'c', output: [{ type: 'input_text', text: 'ok' }] },
        { id: 'ig', type: 'image_generation_call', status: 'completed', result: 'AAEC' },
        { role: 'assistant', content: 'Fine.' },
        { role: 'user', content: [{ type: 'input_file', filename: 'a.pdf', file_data: 'data:application/pdf;base64,JVBERg==' }] },
        {
          role: 'user',
          content: [
            { type: 'input_image', image_url: 'data:image/png;base64,AAEC', detail: 'auto' },
            { type: 'input_text', text: 'This?' },
          ],
        },
      ],
    })
    const [task = ''] = id.split('.')
    const messages = await platform.client.messages(task)
    expect(messages.map(({ author, content }) => [author, content.type])).toEqual([
      ['system', 'text'],
      ['user', 'text'],
      ['agent', 'tool_request'],
      ['agent', 'tool_response'],
      ['agent', 'media'],
      ['agent', 'text'],
      ['user', 'media'],
      ['user', 'media'],
      ['user', 'text'],
      ['agent', 'text'],
    ])
    expect(messages[1]?.content).toMatchObject({ text: 'One\n\nand two.' })
    expect(messages[3]?.content).toMatchObject({ content: 'ok' })
    expect(messages[6]?.content).toMatchObject({ mimeType: 'application/pdf', name: 'a.pdf' })
  })
})

describe('a turn that asks', () => {
  test('ends its response with approval requests, and the responses to them continue it', async () => {
    await startOwnWorker(platform, [payer])
    const asked = await clientOf().responses.stream({ model: 'payer', input: 'go' }).finalResponse()
    expect(asked).toMatchObject({ status: 'completed', output_text: 'I will pay.' })
    expect(asked.output.slice(1)).toMatchObject([
      { type: 'mcp_approval_request', server_label: 'rivulet', name: 'pay', arguments: '{"amount":1}' },
      { type: 'mcp_approval_request', name: 'pay', arguments: '{"amount":2}' },
    ])
    expect(await clientOf(1).responses.retrieve(asked.id)).toEqual(plain(asked))
    const [first = '', second = ''] = approvalsIn(asked)
    const after = { model: 'payer', previous_response_id: asked.id }
    await expect(clientOf().responses.create({ ...after, input: [approval(first)] })).rejects.toMatchObject({ status: 400, param: 'input' })
    const input = [approval(first), { ...approval(second), approve: false, reason: 'too much' }]
    const again = await clientOf(1).responses.create({ ...after, input })
    expect(again).toMatchObject({ status: 'completed', previous_response_id: asked.id, output_text: 'One more.' })
    expect(again.output).toMatchObject([
      { type: 'mcp_call', name: 'pay', arguments: '{"amount":1}', output: 'paid 1', status: 'completed' },
      { type: 'mcp_call', arguments: '{"amount":2}', output: null, status: 'failed' },
      { type: 'message' },
      { type: 'mcp_approval_request', arguments: '{"amount":3}' },
    ])
    expect(JSON.stringify(again.output[1]?.type === 'mcp_call' && again.output[1].error)).toContain('too much')
    const items = await clientOf().responses.inputItems.list(again.id)
    expect(items.data).toMatchObject([
      { type: 'mcp_approval_response', approve: true },
      { approve: false, reason: 'too much' },
    ])
    // Without previous_response_id: the request has its conversation in its id.
    const stream = clientOf().responses.stream({ model: 'payer', input: approvalsIn(again).map(approval) })
    const last = await stream.finalResponse()
    expect(last).toMatchObject({ status: 'completed', previous_response_id: again.id, output_text: 'Done.' })
    expect(last.output).toMatchObject([{ type: 'mcp_call', output: 'paid 3' }, { type: 'message' }])
    expect(paid).toEqual([1, 3])
    // Each response stays what it was, also when a client repeats its answer.
    expect(await clientOf().responses.retrieve(asked.id)).toEqual(plain(asked))
    expect(await clientOf().responses.create({ ...after, input })).toEqual(again)
    const other = { model: 'payer', input: 'Next', previous_response_id: last.id, background: true }
    expect((await clientOf().responses.create(other)).conversation?.id).toBe(asked.conversation?.id)
  })

  test('is approved at another API after the first was killed, and each response can be cut after any chunk', async () => {
    const own = await startPlatform({ apis: 2, workers: 1 })
    onTestFinished(() => own.close())
    await startOwnWorker(own, [payer])
    // The first API serves the worker, which has to go on.
    const [second, first] = own.urls.map(url => new OpenAI({ apiKey: 'none', baseURL: `${url}/openai/v1`, maxRetries: 0 }))
    if (!first || !second) throw new Error('There are two APIs')
    const asked = await first.responses.create({ model: 'payer', input: 'go' })
    await own.apis[1]?.kill('SIGKILL')
    const input = approvalsIn(asked).map(approval)
    const more = await second.responses.create({ model: 'payer', previous_response_id: asked.id, input })
    const last = await second.responses.create({ model: 'payer', input: approvalsIn(more).map(approval) })
    expect([more.output_text, last.output_text]).toEqual(['One more.', 'Done.'])
    for (const { id, output } of [asked, more, last]) {
      const whole = await all(await second.responses.retrieve(id, { stream: true }))
      expect(whole.at(-1)).toMatchObject({ type: 'response.completed', response: { output } })
      for (const [place, { sequence_number: after }] of whole.entries()) {
        const rest = await all(await second.responses.retrieve(id, { stream: true, starting_after: after }))
        expect([place, rest]).toEqual([place, whole.slice(place + 1)])
      }
    }
    const [task = ''] = asked.id.split('.')
    await own.redis.del(own.keys.stream(task), own.keys.state(task))
    for (const { id, output } of [asked, more, last]) {
      expect((await second.responses.stream({ response_id: id }).finalResponse()).output).toMatchObject(output)
    }
  })

  test('calls the function ask for a form, and the tool of a client; a wrong output leaves it open', async () => {
    await startOwnWorker(platform, [registrar, shopper])
    const form = await clientOf().responses.create({ model: 'registrar', input: 'go' })
    const [asked] = form.output
    if (asked?.type !== 'function_call') throw new Error('A form is a call')
    expect([asked.name, JSON.parse(asked.arguments)]).toMatchObject([
      'ask',
      { message: 'Who are you?', schema: { properties: { name: { type: 'string' } } } },
    ])
    const answer = (call_id: string, output: string) => [{ type: 'function_call_output' as const, call_id, output }]
    const after = { model: 'registrar', previous_response_id: form.id }
    await expect(clientOf().responses.create({ ...after, input: answer(asked.call_id, '{"name":1}') })).rejects.toMatchObject({
      status: 400,
    })
    const named = await clientOf().responses.create({ ...after, input: answer(asked.call_id, '{"name":"Ada"}') })
    expect(named.output_text).toBe('accept {"name":"Ada"}')
    const types: string[] = []
    const stream = clientOf().responses.stream({ model: 'shopper', input: 'go' })
    stream.on('event', ({ type }) => types.push(type))
    const [call_] = (await stream.finalResponse()).output
    expect(call_).toMatchObject({ type: 'function_call', name: 'locate', arguments: '{}' })
    expect(types).toContain('response.function_call_arguments.done')
    const input = answer(call_?.type === 'function_call' ? call_.call_id : '', 'Oslo')
    expect((await clientOf().responses.create({ model: 'shopper', input })).output_text).toBe('You are in "Oslo".')
  })

  test('calls a function that the request has brought, for an agent that takes them', async () => {
    await startOwnWorker(platform, [guide])
    const tools = [{ type: 'function' as const, name: 'gps', description: 'Where I am', parameters: { type: 'object' }, strict: false }]
    const asked = await clientOf().responses.create({ model: 'guide', input: 'go', tools })
    const [called] = asked.output
    expect(called).toMatchObject({ type: 'function_call', name: 'gps' })
    const output = {
      type: 'function_call_output' as const,
      call_id: called?.type === 'function_call' ? called.call_id : '',
      output: 'Oslo',
    }
    const next = { model: 'guide', previous_response_id: asked.id, tools }
    expect((await clientOf(1).responses.create({ ...next, input: [output] })).output_text).toBe('You are in "Oslo".')
    const other = clientOf().responses.create({ ...next, tools: [{ type: 'web_search' }], input: 'go' })
    await expect(other).rejects.toMatchObject({ status: 400, param: 'tools.0' })
  })

  test('goes on without an answer when a new message declines it', async () => {
    await startOwnWorker(platform, [registrar])
    const form = await clientOf().responses.create({ model: 'registrar', input: 'go' })
    const next = { model: 'registrar', input: 'Never mind', previous_response_id: form.id, background: true }
    const { id } = await clientOf().responses.create(next)
    const [task = ''] = id.split('.')
    const texts = async () => (await platform.client.messages(task)).map(({ content }) => 'text' in content && content.text)
    await until('it has gone on', async () => (await texts()).includes('decline null'))
  })
})

describe('errors', () => {
  test.each([
    ['an unknown model', { model: 'no-such-agent' }, 404, 'model'],
    ['an invalid model', { model: 'gpt 4!' }, 404, 'model'],
    ['tools of the client', { tools: [{ type: 'function', name: 'f', parameters: {}, strict: true }] }, 400, 'tools'],
    ['another format', { text: { format: { type: 'json_object' } } }, 400, 'text.format'],
    ['no input', { input: [] }, 400, 'input'],
    ['an unknown approval request', { input: [{ type: 'mcp_approval_response', approval_request_id: 'x', approve: true }] }, 404, null],
    ['a last word of the assistant', { input: [{ role: 'assistant', content: 'x' }] }, 400, 'input'],
    ['an unknown response', { previous_response_id: 'resp_1' }, 404, null],
    ['another agent', { previous_response_id: 'other' }, 400, null],
  ])('%s', async (_, fields, status, param) => {
    const made = 'previous_response_id' in fields && fields.previous_response_id === 'other'
    const id = made ? (await clientOf().responses.create({ model: 'scripted', input: 'x', params: { steps: [] } } as never)).id : undefined
    const body = { model: 'echo', input: 'x', ...fields, ...(id !== undefined && { previous_response_id: id }) }
    const error = await clientOf()
      .responses.create(body as never)
      .then(
        () => null,
        error => error,
      )
    expect(error).toBeInstanceOf(APIError)
    expect([error.status, typeof error.type, error.param ?? null]).toEqual([status, 'string', param])
  })

  test('fields that it does not know are ignored', async () => {
    const body = { model: 'echo', input: 'hi', service_tier: 'auto', truncation: 'auto', include: [], user: 'u', brand_new_field: { a: 1 } }
    expect((await clientOf().responses.create(body as never)).output_text).toBe('hi')
  })
})

test.each([
  ['responses', true],
  ['chat completions', false],
])('the OpenAI Agents SDK runs an agent by %s', async (_, useResponses) => {
  const modelProvider = new OpenAIProvider({ openAIClient: clientOf(), useResponses })
  const runner = new Runner({ modelProvider, tracingDisabled: true })
  const agent = new Agent({ name: 'Echo', instructions: 'Repeat it.', model: 'echo' })
  const first = await runner.run(agent, 'one')
  expect(first.finalOutput).toBe('one')
  const after = useResponses && first.lastResponseId !== undefined ? { previousResponseId: first.lastResponseId } : {}
  const second = await runner.run(agent, 'two', { stream: true, ...after })
  let text = ''
  for await (const delta of second.toTextStream()) text += delta
  await second.completed
  expect([text, second.finalOutput]).toEqual(['two', 'two'])
  if (!useResponses) return
  const [task = ''] = second.lastResponseId?.split('.') ?? []
  expect(await platform.client.messages(task)).toHaveLength(4)
})

test.each([
  ['responses', true],
  ['chat completions', false],
])('the OpenAI Agents SDK runs its own tools for an agent that takes them, by %s', async (_, useResponses) => {
  await startOwnWorker(platform, [guide])
  const gps = tool({ name: 'gps', description: 'Where I am', parameters: z.object({}), execute: () => 'Oslo' })
  const modelProvider = new OpenAIProvider({ openAIClient: clientOf(), useResponses })
  const runner = new Runner({ modelProvider, tracingDisabled: true })
  const agent = new Agent({ name: 'Guide', instructions: 'Be brief.', model: 'guide', tools: [gps] })
  const { finalOutput, lastResponseId } = await runner.run(agent, 'Where am I?')
  expect(finalOutput).toBe('You are in "Oslo".')
  if (!useResponses) return
  const [task = ''] = lastResponseId?.split('.') ?? []
  expect((await platform.client.detail(task)).turns).toHaveLength(1)
})

test('models are the agents', async () => {
  const { data } = await clientOf().models.list()
  expect(data.map(({ id }) => id)).toEqual(expect.arrayContaining(['echo', 'scripted']))
  expect(await clientOf().models.retrieve('echo')).toMatchObject({ id: 'echo', object: 'model', owned_by: 'rivulet' })
  await expect(clientOf().models.retrieve('none')).rejects.toMatchObject({ status: 404 })
})

function clientOf(api = 0): OpenAI {
  return new OpenAI({ apiKey: 'none', baseURL: `${platform.urls[api]}/openai/v1` })
}

/** `params` are those of the agent. */
function bodyOf(script: Step[]) {
  return { model: 'scripted', input: 'go', metadata: { who: 'me' }, params: { steps: script } }
}

function approvalsIn({ output }: Response): string[] {
  return output.flatMap(item => (item.type === 'mcp_approval_request' ? [item.id] : []))
}

function approval(id: string) {
  return { type: 'mcp_approval_response' as const, approval_request_id: id, approve: true }
}

function deltasIn(events: readonly ResponseStreamEvent[]): string {
  return events.flatMap(event => (event.type === 'response.output_text.delta' ? [event.delta] : [])).join('')
}

async function all(stream: AsyncIterable<ResponseStreamEvent>): Promise<ResponseStreamEvent[]> {
  const events: ResponseStreamEvent[] = []
  for await (const event of stream) events.push(event)
  return events
}

/** Without what the helper adds. */
function plain({ output_parsed: _, ...response }: Response & { output_parsed?: unknown }): object {
  for (const item of response.output)
    if (item.type === 'message') for (const part of item.content) delete (part as { parsed?: unknown }).parsed
  return response
}
