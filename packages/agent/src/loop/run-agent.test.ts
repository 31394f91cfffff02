import { getEventListeners } from 'node:events'
import { text, toolRequest, toolResponse, type Update, type Usage } from '@rivulet/protocol'
import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import { collect, folded, lines } from '../../test/collect.ts'
import { AgentError } from '../agent-error.ts'
import { system, user } from '../model/conversation.ts'
import { createEventStream } from '../model/event-stream.ts'
import type { Model, ModelRequest } from '../model/model.ts'
import { call, callText, fail, type Script, say, think } from '../scripted/script.ts'
import { scriptedModel } from '../scripted/scripted-model.ts'
import { defineTool, type ToolContext } from '../tools/tool.ts'
import { type RunOptions, runAgent } from './run-agent.ts'

const echo = tool('echo', ({ value }) => value ?? 'nothing')
const broken = tool('broken', () => Promise.reject(new Error('it broke')))
const wild = tool('wild', () => Promise.reject(Object.create(null)))

describe('the loop', () => {
  test('ends with the response when the model requests no tool', async () => {
    const { updates, result } = await run(['The answer.'])
    expect(lines(updates)).toEqual(['0 start text', '0 text The answer.', '0 done stop'])
    expect(result).toMatchObject({ text: 'The answer.', stopReason: 'stop', steps: 1, toolCalls: [] })
  })

  test('runs the requested tools, and calls the model again with their results', async () => {
    const requests: ModelRequest[] = []
    const { updates, result } = await run(
      [
        request => note(request, [think('hm'), say('Let me see.'), call('echo', { value: 42 }, 'a')]),
        request => note(request, 'It is 42.'),
      ],
      { tools: [echo], messages: [system('Be kind.'), user('what?')], system: 'Be brief.' },
    )
    expect(lines(updates)).toEqual([
      '0 start reasoning',
      '0 reasoning_content hm',
      '0 done',
      '1 start text',
      '1 text Let me see.',
      '1 done',
      '2 start tool_request a echo',
      '2 tool_request {"value":42}',
      '2 done tool_use',
      '3 start tool_response a echo',
      '3 full 42',
      '4 start text',
      '4 text It is 42.',
      '4 done stop',
    ])
    expect(result).toMatchObject({ text: 'It is 42.', steps: 2, stopReason: 'stop', toolCalls: [toolRequest('a', 'echo', { value: 42 })] })
    expect(requests[0]).toMatchObject({ system: 'Be brief.', tools: [{ name: 'echo' }] })
    expect(requests[1]?.messages.map(({ content }) => content)).toEqual([
      text('Be kind.'),
      text('what?'),
      { type: 'reasoning', summary: [], content: ['hm'] },
      text('Let me see.', 'markdown'),
      toolRequest('a', 'echo', { value: 42 }),
      toolResponse('a', 'echo', 42),
    ])

    function note<T>(request: ModelRequest, step: T): T {
      requests.push(request)
      return step
    }
  })

  test('returns messages that continue the conversation', async () => {
    const model = scriptedModel([
      'first',
      ({ messages }) => messages.map(({ content }) => (content.type === 'text' ? content.text : '')).join('|'),
    ])
    const history = [user('one')]
    const { messages } = await runAgent({ model, messages: history }).result
    const again = await runAgent({ model, messages: [...history, ...messages, user('two')] }).result
    expect(again.text).toBe('one|first|two')
  })

  test('returns the messages that a log would fold from its updates', async () => {
    const { updates, result } = await run([[say('a'), call('echo', { value: 'x' }), call('broken')], [think('b')], 'never'], {
      tools: [echo, broken],
    })
    expect(result?.messages).toEqual(
      folded(updates).map(({ task: _, turn: __, attempt: ___, createdAt: ____, finishedAt: _____, ...spoken }) => spoken),
    )
  })

  test('returns the usage as the sum of its steps', async () => {
    const usage = { inputTokens: 5, outputTokens: 2 }
    const more = { ...usage, constructor: 1 } as unknown as Usage
    const { result } = await run(
      [
        { parts: [call('echo')], usage },
        { parts: [say('x')], usage: more },
      ],
      { tools: [echo] },
    )
    expect(result?.usage).toEqual({ inputTokens: 10, outputTokens: 4, constructor: 1 })
    expect(result?.messages.flatMap(message => (message.usage ? [message.usage] : []))).toEqual([usage, more])
  })

  test('fails after maxSteps, with an error that keeps the partial result', async () => {
    const { error, updates } = await run(() => [call('echo', { value: 1 })], { tools: [echo], maxSteps: 3 })
    expect(error).toBeInstanceOf(AgentError)
    expect(error).toMatchObject({ message: 'The model still requested tools after 3 steps (maxSteps)', partial: { steps: 3 } })
    expect(folded(updates).filter(({ content }) => content.type === 'tool_response')).toHaveLength(3)
  })

  test('sends the tool choice in the first request only', async () => {
    const choices: unknown[] = []
    const script: Script = ({ toolChoice }) => {
      choices.push(toolChoice)
      return choices.length === 1 ? [call('echo')] : 'ok'
    }
    await run(script, { tools: [echo], toolChoice: 'required' })
    expect(choices).toEqual(['required', undefined])
  })

  test('returns the object of the last response, in a run with a schema of zod or of JSON', async () => {
    const script: Script = ({ schema, messages }) => {
      expect(schema).toMatchObject({ type: 'object', properties: { sum: { type: 'number' } } })
      return messages.at(-1)?.content.type === 'tool_response' ? '{"sum":3}' : [call('echo')]
    }
    const schema = z.object({ sum: z.number(), unit: z.string().default('kg') })
    expect((await run(script, { tools: [echo], schema })).result?.object).toEqual({ sum: 3, unit: 'kg' })
    const json = { type: 'object', properties: { sum: { type: 'number' } }, required: ['sum'] }
    expect((await run(script, { tools: [echo], schema: json })).result?.object).toEqual({ sum: 3 })
  })

  test.each(['no JSON', '{"sum":"three"}'])('fails for a last response that does not match the schema: %s', async text => {
    const json = { type: 'object', properties: { sum: { type: 'number' } } }
    for (const schema of [z.object({ sum: z.number() }), json]) {
      const { error } = await run(() => text, { schema })
      const publicMessage = 'The response of the model does not match the schema'
      expect(error).toMatchObject({ code: 'validation_failed', publicMessage, partial: { text } })
    }
  })

  test('lets concurrent runs share one model and one set of tools', async () => {
    const model = scriptedModel(({ messages }) => {
      const asked = messages.flatMap(({ author, content }) => (author === 'user' && content.type === 'text' ? [content.text] : [])).join()
      const last = messages.at(-1)?.content
      return last?.type === 'tool_response' ? `${asked}: ${last.content}` : [call('echo', { value: asked })]
    })
    const runs = ['a', 'b', 'c'].map(words => runAgent({ model, tools: [echo], messages: [user(words)] }).result)
    expect((await Promise.all(runs)).map(({ text }) => text)).toEqual(['a: a', 'b: b', 'c: c'])
  })

  test('throws at once on invalid options', () => {
    const model = scriptedModel([])
    expect(() => runAgent({ model, messages: [], tools: [echo, echo] })).toThrow('Duplicate tool name: echo')
    expect(() => runAgent({ model, messages: [], maxSteps: 0 })).toThrow('maxSteps')
  })
})

describe('a tool', () => {
  test('runs only when the response that requests it is complete, and after its message was started', async () => {
    const seen: Update[] = []
    let before: string[] = []
    const spy = tool('spy', () => {
      before = lines(seen)
      return 'done'
    })
    await run([[call('spy', { value: 1 }, 'a'), say('after')], 'ok'], { tools: [spy], observers: [update => seen.push(update)] })
    expect(before).toEqual([
      '0 start tool_request a spy',
      '0 tool_request {"value":1}',
      '0 done',
      '1 start text',
      '1 text after',
      '1 done tool_use',
      '2 start tool_response a spy',
    ])
  })

  test('can show progress until it has returned, and not after', async () => {
    let late: (() => void) | undefined
    const slow = tool('slow', (_, { progress }) => {
      progress('one ')
      progress('two')
      progress({ percent: 50 })
      progress('text again')
      progress('!')
      late = () => progress('too late')
      return { answer: 42 }
    })
    const { updates } = await run(
      [
        [call('slow', {}, 'a')],
        () => {
          late?.()
          return 'ok'
        },
      ],
      { tools: [slow] },
    )
    expect(lines(updates).slice(3, 9)).toEqual([
      '1 start tool_response a slow',
      '1 tool_response one two',
      '1 {"type":"data","value":{"percent":50}}',
      '1 {"type":"data","value":"text again"}',
      '1 tool_response !',
      '1 full {"answer":42}',
    ])
    expect(JSON.stringify(updates)).not.toContain('too late')
    expect(folded(updates)).toHaveLength(3)
  })

  test.each([
    ['that does not exist', call('nothing'), 'Unknown tool: nothing. Available tools: echo, broken, wild, typed.'],
    ['that throws', call('broken'), 'it broke'],
    ['that throws a value without text', call('wild'), 'The thrown value cannot be converted to text'],
    ['whose arguments do not match its schema', call('typed', { n: 'x' }), expect.stringContaining('expected number')],
    ['whose arguments are not JSON', callText('echo', '{"value":'), 'Not run: the arguments are not valid JSON: {"value":'],
  ])('%s gets an error response, and the loop continues', async (_, asked, reason) => {
    let ran = 0
    const typed = defineTool({ name: 'typed', description: '', input: z.object({ n: z.number() }), run: () => (ran += 1) })
    const { result, updates } = await run([[asked], 'I see.'], { tools: [echo, broken, wild, typed] })
    const responses = result?.messages.flatMap(({ content }) => (content.type === 'tool_response' ? [content] : []))
    expect(responses).toEqual([expect.objectContaining({ isError: true, content: reason })])
    expect(result).toMatchObject({ text: 'I see.', stopReason: 'stop' })
    expect(updates.filter(update => update.type === 'start' && update.content.type === 'tool_response')).toHaveLength(1)
    expect(ran).toBe(0)
  })

  test('call whose arguments are not JSON is sent to the model with its error', async () => {
    let shown: ModelRequest['messages'] = []
    const capture = ({ messages }: ModelRequest) => {
      shown = messages.slice(1)
      return 'ok'
    }
    await run([[callText('echo', '{"value":', 'a')], capture], { tools: [echo] })
    expect(shown).toMatchObject([
      { content: toolRequest('a', 'echo', {}) },
      { content: { type: 'tool_response', callId: 'a', isError: true } },
    ])
  })

  test('result that is not JSON is an error, and an undefined one is null', async () => {
    const odd = tool('odd', () => 7n)
    const silent = tool('silent', () => undefined)
    const { result } = await run([[call('odd'), call('silent')], 'ok'], { tools: [odd, silent] })
    expect(responsesOf(result)).toMatchObject([
      { isError: true, content: 'A value of type bigint is not JSON' },
      { isError: false, content: null },
    ])
  })

  test('does not run for a response that was cut off, even when its arguments parse', async () => {
    let ran = 0
    const count = tool('count', () => (ran += 1))
    const cut = { parts: [call('count', { value: 1 }), callText('count', '{"val')], stopReason: 'length' as const }
    const { result } = await run([cut, [call('count')], 'ok'], { tools: [count] })
    expect(ran).toBe(1)
    expect(responsesOf(result).map(({ isError }) => isError)).toEqual([true, true, false])
    expect(result).toMatchObject({ text: 'ok', steps: 3 })
  })

  test.each(['content_filter', 'other'] as const)('does not run after %s, and the run ends', async stopReason => {
    const { result } = await run([{ parts: [call('echo')], stopReason }], { tools: [echo] })
    expect(result).toMatchObject({ stopReason, steps: 1 })
    expect(responsesOf(result)).toMatchObject([{ isError: true }])
  })
})

describe('several calls', () => {
  test('run in parallel, and their responses keep the order of the calls', async () => {
    let release: () => void = () => {}
    const second = new Promise<void>(resolve => (release = resolve))
    const first = tool('first', async (_, { progress }) => {
      progress('waiting')
      await second
      return 1
    })
    const other = tool('other', (_, { progress }) => {
      progress('quick')
      release()
      return 2
    })
    const { updates, result } = await run([[call('first', {}, 'a'), call('other', {}, 'b')], 'ok'], { tools: [first, other] })
    expect(lines(updates).filter(line => /^[23] /.test(line))).toEqual([
      '2 start tool_response a first',
      '3 start tool_response b other',
      '2 tool_response waiting',
      '3 tool_response quick',
      '3 full 2',
      '2 full 1',
    ])
    expect(responsesOf(result).map(({ callId }) => callId)).toEqual(['a', 'b'])
  })

  test('do not add their listeners to one shared signal', async () => {
    const warnings: Error[] = []
    const note = (warning: Error) => warnings.push(warning)
    process.on('warning', note)
    const abort = new AbortController()
    const listening = tool('listening', (_, { signal }) => {
      for (let at = 0; at < 5; at += 1) signal.addEventListener('abort', () => {})
      return new Promise(resolve => setTimeout(resolve, 1))
    })
    await run([Array.from({ length: 100 }, () => call('listening')), 'ok'], { tools: [listening], signal: abort.signal })
    await new Promise(resolve => setTimeout(resolve, 1))
    process.off('warning', note)
    expect(warnings).toEqual([])
    expect(getEventListeners(abort.signal, 'abort')).toEqual([])
  })

  test('run one by one when one of the tools is sequential', async () => {
    const log: string[] = []
    const step = defineTool({
      name: 'step',
      description: '',
      input: z.object({ value: z.string() }),
      sequential: true,
      run: async ({ value }) => {
        log.push(`${value} begins`)
        await new Promise(resolve => setTimeout(resolve, 1))
        log.push(`${value} ends`)
      },
    })
    await run([[call('step', { value: 'a' }), call('echo'), call('step', { value: 'b' })], 'ok'], { tools: [step, echo] })
    expect(log).toEqual(['a begins', 'a ends', 'b begins', 'b ends'])
  })
})

describe('an abort', () => {
  test('reaches the tools, and every call gets exactly one response', async () => {
    const abort = new AbortController()
    const signals: AbortSignal[] = []
    const hanging = tool('hanging', (_, { signal }) => {
      signals.push(signal)
      if (signals.length === 2) queueMicrotask(() => abort.abort())
      return new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason)))
    })
    const { result, error, updates } = await run([[call('hanging'), call('echo', { value: 1 }), call('hanging')]], {
      tools: [hanging, echo],
      signal: abort.signal,
    })
    expect(error).toBeUndefined()
    expect(signals.every(({ aborted }) => aborted)).toBe(true)
    expect(responsesOf(result)).toMatchObject([
      { isError: true, content: 'The call was aborted before it had a result.' },
      { isError: false, content: 1 },
      { isError: true },
    ])
    expect(result).toMatchObject({ stopReason: 'aborted', steps: 1 })
    expect(lines(updates).slice(-2)).toEqual(['6 start text', '6 done aborted aborted'])
  })

  test('ends the run without a tool that ignores its signal', async () => {
    const abort = new AbortController()
    let lateProgress: ToolContext['progress'] = () => {}
    const deaf = tool('deaf', (_, { progress }) => {
      lateProgress = progress
      abort.abort()
      return new Promise(() => {})
    })
    const { result, updates } = await run([[call('deaf')]], { tools: [deaf], signal: abort.signal })
    lateProgress('still here')
    expect(result?.stopReason).toBe('aborted')
    expect(JSON.stringify(updates)).not.toContain('still here')
  })

  test('gives an error response to the calls of a sequential batch that have not started', async () => {
    const abort = new AbortController()
    const stop = defineTool({ name: 'stop', description: '', input: z.object({}), sequential: true, run: () => abort.abort() })
    const { result } = await run([[call('stop', {}, 'a'), call('stop', {}, 'b'), call('stop', {}, 'c')]], {
      tools: [stop],
      signal: abort.signal,
    })
    expect(responsesOf(result).map(({ callId }) => callId)).toEqual(['a', 'b', 'c'])
    expect(responsesOf(result).slice(1)).toMatchObject([{ isError: true }, { isError: true }])
  })

  test('within the response keeps the partial output, and gives an error response to the incomplete call', async () => {
    const abort = new AbortController()
    const stream = runAgent({
      model: scriptedModel([[say('Half'), callText('echo', `"${'x'.repeat(10_000)}"`, 'a')]]),
      tools: [echo],
      messages: [user('go')],
      signal: abort.signal,
    })
    let argumentDeltas = 0
    for await (const update of stream) {
      if (update.type === 'delta' && update.delta.type === 'tool_request') argumentDeltas += 1
      if (argumentDeltas === 3) abort.abort()
    }
    const { messages, stopReason } = await stream.result
    expect(stopReason).toBe('aborted')
    expect(messages).toMatchObject([
      { status: 'complete', content: text('Half', 'markdown') },
      { status: 'aborted', content: { type: 'tool_request' }, stopReason: 'aborted' },
      { status: 'complete', content: toolResponse('a', 'echo', 'The call was aborted before it had a result.', true) },
    ])
  })

  test('before the start makes no request, and gives an empty aborted message', async () => {
    const model = scriptedModel(['never'])
    const { updates, result } = await collect(runAgent({ model, messages: [user('go')], signal: AbortSignal.abort() }))
    expect(lines(updates)).toEqual(['0 start text', '0 done aborted aborted'])
    expect(result).toMatchObject({ stopReason: 'aborted', steps: 0 })
    expect(model.calls).toBe(0)
  })

  test('ends the run without a model that ignores its signal, and closes its open messages', async () => {
    const abort = new AbortController()
    const deaf: Model = {
      name: 'deaf',
      stream: () =>
        createEventStream(({ emit }) => {
          emit({ type: 'delta', index: 0, delta: { type: 'text', text: 'Half' } })
          abort.abort()
          return new Promise(() => {})
        }),
    }
    const { updates, result } = await collect(runAgent({ model: deaf, messages: [user('go')], signal: abort.signal }))
    expect(result).toMatchObject({ stopReason: 'aborted', text: 'Half' })
    expect(lines(updates).at(-1)).toBe('0 done aborted aborted')
  })

  test('happens when the only reader stops early', async () => {
    let signal: AbortSignal | undefined
    const hanging = tool('hanging', (_, context) => {
      signal = context.signal
      context.progress('here')
      return new Promise(() => {})
    })
    for await (const update of runAgent({ model: scriptedModel([[call('hanging')]]), tools: [hanging], messages: [] })) {
      if (update.type === 'delta' && update.delta.type === 'tool_response') break
    }
    expect(signal?.aborted).toBe(true)
  })
})

describe('a failure', () => {
  test('of the model ends the run, keeps the partial output, and gives every call a response', async () => {
    const { updates, error } = await run(
      [
        [say('a'), call('echo', {}, 'a')],
        [say('Half'), call('echo', {}, 'b'), fail('out of luck')],
      ],
      { tools: [echo] },
    )
    expect(error).toBeInstanceOf(AgentError)
    expect(error).toMatchObject({ message: 'out of luck', partial: { steps: 2, stopReason: 'error', text: 'Half' } })
    const messages = folded(updates)
    expect(messages.every(({ status }) => status !== 'streaming')).toBe(true)
    expect(messages.at(-1)).toMatchObject({ content: { type: 'tool_response', callId: 'b', isError: true } })
  })

  test('of a model that throws instead of streaming ends the run the same way', async () => {
    const rude: Model = {
      name: 'rude',
      stream: () => {
        throw new Error('not today')
      },
    }
    expect((await collect(runAgent({ model: rude, messages: [] }))).error).toMatchObject({ message: 'not today', partial: { steps: 1 } })
  })

  test('from output above the limit of a turn ends the run, and closes the open messages', async () => {
    const flood = tool('flood', () => 'x'.repeat(17 * 1024 * 1024))
    const { updates, error } = await run([[call('flood')], 'never'], { tools: [flood] })
    expect(error).toMatchObject({ message: expect.stringContaining('at most 16777216 bytes') })
    expect(folded(updates).map(({ status }) => status)).toEqual(['complete', 'failed'])
  })

  test('of a custom model to number its messages ends the run', async () => {
    const odd: Model = {
      name: 'odd',
      stream: () =>
        createEventStream(async ({ emit }) => {
          emit({ type: 'delta', index: 7, delta: { type: 'text', text: 'x' } })
          return { messages: [], text: '', toolCalls: [], stopReason: 'stop' }
        }),
    }
    expect((await collect(runAgent({ model: odd, messages: [] }))).error).toMatchObject({
      message: expect.stringContaining('the next new message must have index 0'),
    })
  })
})

test('a run does not read its model faster than its own reader reads the run', async () => {
  let emitted = 0
  const endless: Model = {
    name: 'endless',
    stream: (_, { signal } = {}) =>
      createEventStream(
        async ({ emit, ready, signal }) => {
          emit({ type: 'start', index: 0, content: text() })
          for (; !signal.aborted; emitted += 1) {
            emit({ type: 'delta', index: 0, delta: { type: 'text', text: 'x' } })
            await ready()
          }
          return { messages: [], text: '', toolCalls: [], stopReason: 'aborted' }
        },
        { signal },
      ),
  }
  const iterator = runAgent({ model: endless, messages: [] })[Symbol.asyncIterator]()
  await iterator.next()
  for (let waited = 0; waited < 20; waited += 1) await new Promise(resolve => setTimeout(resolve, 1))
  expect(emitted).toBeLessThan(1000)
  await iterator.return?.()
})

function tool(name: string, run: (args: { value?: unknown }, context: ToolContext) => unknown) {
  return defineTool({ name, description: name, input: z.object({ value: z.unknown().optional() }), run })
}

function run(script: Script, options: Partial<RunOptions> = {}) {
  return collect(runAgent({ model: scriptedModel(script), messages: [user('go')], ...options }))
}

function responsesOf(result: Awaited<ReturnType<typeof run>>['result']) {
  return (result?.messages ?? []).flatMap(({ content }) => (content.type === 'tool_response' ? [content] : []))
}
