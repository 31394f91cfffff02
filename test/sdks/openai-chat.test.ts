/** OpenAI's SDK, unmodified, with Rivulet as its base URL: chat completions. What their streams cannot say, the response of the same id has. */
import { delta, done as finish } from '@rivulet/worker'
import OpenAI, { APIError } from 'openai'
import type { ChatCompletionChunk } from 'openai/resources/chat/completions'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { halting } from '../support/agents/halting-agent.ts'
import { done, extend, fail, full, repeat, rest, say } from '../support/agents/scripts.ts'
import { startOwnWorker } from '../support/platform/own-worker.ts'
import { type Platform, startPlatform } from '../support/platform/platform.ts'
import { guide } from './asking-agents.ts'
import { everyContent } from './every-content.ts'

let platform: Platform

beforeAll(async () => {
  platform = await startPlatform({ apis: 2, workers: 1 })
})
afterAll(() => platform.close())

const question = [{ role: 'user' as const, content: 'Where?' }]

describe('chat completions', () => {
  test('whole and streamed, with usage and history', async () => {
    const messages = [
      { role: 'system' as const, content: 'Be brief.' },
      { role: 'user' as const, content: 'One?' },
      { role: 'assistant' as const, content: 'One.' },
      { role: 'user' as const, content: 'Two?' },
    ]
    const whole = await clientOf().chat.completions.create({ model: 'echo', messages })
    expect(whole.choices).toMatchObject([{ message: { role: 'assistant', content: 'Two?' }, finish_reason: 'stop' }])
    expect((await platform.client.messages(whole.id.split('.')[0] ?? '')).map(({ author }) => author)).toEqual([
      'system',
      'user',
      'agent',
      'user',
      'agent',
    ])
    const params = { steps: [say(0, 'a'), rest(5), say(0, 'b'), done(0), full(1, { type: 'data', data: 1 }), say(2, 'c')] }
    const stream = clientOf().chat.completions.stream({
      model: 'scripted',
      messages,
      stream_options: { include_usage: true },
      params,
    } as never)
    const final = await stream.finalChatCompletion()
    expect(final.choices[0]?.message.content).toBe('ab\n\nc')
    expect(final.usage).toMatchObject({ total_tokens: 0 })
    const named = { model: 'echo', messages: [{ role: 'user' as const, content: 'hi' }], metadata: { task: 'chat-thread' } }
    const [a, b] = [await clientOf().chat.completions.create(named), await clientOf().chat.completions.create(named)]
    expect(a.id.split('.')[0]).toBe(b.id.split('.')[0])
  })

  test('a retry and a replaced text end the stream with an error, a failed turn is one', async () => {
    const ask = (params: object) => ({ model: 'scripted', messages: [{ role: 'user', content: 'x' }], params }) as never
    const attempts = { 1: [say(0, 'First'), rest(20), fail('no')], 2: [say(0, 'Second')] }
    for (const params of [
      { attempts },
      { steps: [say(0, 'A draft'), rest(20), full(0, { type: 'text', text: 'Final', format: 'plain' })] },
    ])
      await expect(clientOf().chat.completions.stream(ask(params)).finalChatCompletion()).rejects.toBeInstanceOf(APIError)
    const held = await clientOf().chat.completions.create(ask({ attempts }))
    expect(held.choices[0]?.message.content).toBe('Second')
    const hidden = await clientOf()
      .chat.completions.stream(ask({ attempts }), { query: { retries: 'hide' } })
      .finalChatCompletion()
    expect(hidden.choices[0]?.message.content).toBe('Second')
    await expect(clientOf().chat.completions.create(ask({ steps: [fail('no luck')] }))).rejects.toMatchObject({ status: 500 })
  })

  test('a function of the caller is called, whole and streamed, and its result continues the turn', async () => {
    await startOwnWorker(platform, [guide])
    const gps = { type: 'function' as const, function: { name: 'gps', description: 'Where I am', parameters: { type: 'object' } } }
    const body = { model: 'guide', messages: [{ role: 'user' as const, content: 'Where?' }], tools: [gps] }
    const asked = await clientOf().chat.completions.create(body)
    const streamed = await clientOf(1).chat.completions.stream(body).finalChatCompletion()
    for (const { id, choices } of [asked, streamed]) {
      const [choice] = choices
      expect(choice).toMatchObject({
        finish_reason: 'tool_calls',
        message: { tool_calls: [{ type: 'function', function: { name: 'gps' } }] },
      })
      const result = { role: 'tool' as const, tool_call_id: choice?.message.tool_calls?.[0]?.id ?? '', content: 'Oslo' }
      const next = {
        ...body,
        messages: [...body.messages, { role: 'assistant' as const, tool_calls: choice?.message.tool_calls ?? [] }, result],
      }
      const whole = await clientOf(1).chat.completions.create(next)
      expect(whole.choices).toMatchObject([{ finish_reason: 'stop', message: { content: 'You are in "Oslo".' } }])
      // A request that is repeated gets the same completion.
      const again = await clientOf().chat.completions.stream(next).finalChatCompletion()
      expect([again.id, again.choices[0]?.message.content]).toEqual([whole.id, 'You are in "Oslo".'])
      expect(whole.id.split('.')[0]).toBe(id.split('.')[0])
    }
    const refused = clientOf().chat.completions.create({ ...body, model: 'echo' })
    await expect(refused).rejects.toMatchObject({ status: 400, param: 'tools' })
    const custom = { type: 'custom' as const, custom: { name: 'gps' } }
    await expect(clientOf().chat.completions.create({ ...body, tools: [custom] })).rejects.toMatchObject({ status: 400, param: 'tools.0' })
  })

  test('reasoning comes while the agent thinks, and the whole completion has it, too', async () => {
    const think = (text: string) => delta(0, { type: 'reasoning_summary', index: 0, text })
    const rest = [think('so.'), delta(0, { type: 'reasoning_content', index: 0, text: 'Yes.' }), finish(0), delta(1, 'Four.')]
    const { agent, open } = await halting(platform, [think('Hm, ')], rest)
    let thought = ''
    let text = ''
    for await (const { choices } of await clientOf().chat.completions.create({ model: agent, messages: question, stream: true })) {
      const { content, reasoning_content: more } = (choices[0]?.delta ?? {}) as { content?: string; reasoning_content?: string }
      thought += more ?? ''
      text += content ?? ''
      if (thought === 'Hm, ') open()
    }
    expect([thought, text]).toEqual(['Hm, so.\n\nYes.', 'Four.'])
    const whole = await clientOf(1).chat.completions.create({ model: agent, messages: question })
    expect(whole.choices[0]?.message).toMatchObject({ content: text, reasoning_content: thought })
  })

  test('images, files and audio are inputs; of every type of content, texts and reasoning are output', async () => {
    const content = [
      { type: 'image_url' as const, image_url: { url: 'data:image/png;base64,AAEC' } },
      { type: 'file' as const, file: { filename: 'a.pdf', file_data: 'data:application/pdf;base64,JVBERg==' } },
      { type: 'input_audio' as const, input_audio: { data: 'AAEC', format: 'mp3' as const } },
      { type: 'text' as const, text: 'What is it?' },
    ]
    const { id } = await clientOf().chat.completions.create({ model: 'echo', messages: [{ role: 'user', content }] })
    const [task = ''] = id.split('.')
    expect((await platform.client.messages(task)).map(message => message.content)).toMatchObject([
      { type: 'media', mimeType: 'image/png', data: 'AAEC' },
      { type: 'media', mimeType: 'application/pdf', data: 'JVBERg==', name: 'a.pdf' },
      { type: 'media', mimeType: 'audio/mpeg', data: 'AAEC' },
      { type: 'text', text: 'What is it?' },
      { type: 'text' },
    ])
    const stored = { role: 'user' as const, content: [{ type: 'file' as const, file: { file_id: 'file_1' } }] }
    await expect(clientOf().chat.completions.create({ model: 'echo', messages: [stored] })).rejects.toMatchObject({ status: 400 })
    const body = { model: 'scripted', messages: question, params: { steps: everyContent('c2') } } as never
    const [whole, streamed] = [
      await clientOf().chat.completions.create(body),
      await clientOf()
        .chat.completions.stream(body, { query: { retries: 'hide' } })
        .finalChatCompletion(),
    ]
    const said = { content: 'word word word word word \n\nThe final word.\n\nBye.', reasoning_content: 'Hm \n\nso.' }
    for (const { choices } of [whole, streamed] as { choices: object[] }[])
      expect(choices).toMatchObject([{ finish_reason: 'stop', message: said }])
  })

  test.each(['SIGKILL', 'SIGTERM'] as const)('breaks when its API gets %s, and the response of its id has all of it', async signal => {
    const own = await startPlatform({ apis: 2, workers: 1 })
    onTestFinished(() => own.close())
    // The first API serves the worker, which has to go on.
    const [second, first] = own.urls.map(url => new OpenAI({ apiKey: 'none', baseURL: `${url}/openai/v1`, maxRetries: 0 }))
    if (!first || !second) throw new Error('There are two APIs')
    const { agent, open } = await halting(own, [delta(0, 'one ')], [delta(0, 'two')])
    const waiting = first.chat.completions.create({ model: agent, messages: question })
    const broken = read(await first.chat.completions.create({ model: agent, messages: question, stream: true }), ({ text }) => {
      if (text === 'one ') void own.apis[1]?.kill(signal)
    })
    await Promise.all([expect(waiting).rejects.toThrow(), expect(broken.ended).rejects.toThrow()])
    open()
    expect((await second.responses.stream({ response_id: broken.id }).finalResponse()).output_text).toBe('one two')
  })

  test('is canceled as the response of its id', async () => {
    const { agent } = await halting(platform, [delta(0, 'one ')], [delta(0, 'two')])
    const canceled = read(
      await clientOf().chat.completions.create({ model: agent, messages: question, stream: true }),
      async ({ id, text }) => {
        if (text === 'one ') await clientOf(1).responses.cancel(id)
      },
    )
    await expect(canceled.ended).rejects.toBeInstanceOf(APIError)
    expect((await clientOf().responses.retrieve(canceled.id)).status).toBe('cancelled')
  })

  test('goes on when its client leaves after any chunk, and the response of its id has all of it', async () => {
    const thinking = [extend(0, { type: 'reasoning_summary', index: 0, text: 'Hm ' }), done(0)]
    const params = { steps: [...thinking, repeat(4, say(1, 'word '), rest(5)), done(1), full(2, { type: 'data', data: 1 }), say(3, 'c')] }
    for (let [cut, isWhole] = [1, false]; !isWhole; cut += 1) {
      const body = { model: 'scripted', messages: question, params, stream: true as const }
      let chunks: ChatCompletionChunk[] = []
      for await (const chunk of await clientOf(cut % 2).chat.completions.create(body)) {
        chunks = [...chunks, chunk]
        if (chunks.length === cut) break
      }
      isWhole = chunks.length < cut
      const final = await clientOf()
        .responses.stream({ response_id: chunks[0]?.id ?? '' })
        .finalResponse()
      expect([cut, final.status, final.output_text]).toEqual([cut, 'completed', 'word word word word 1c'])
    }
  })

  test('goes on without a gap in its text when the log is lost while it streams', async () => {
    const { agent, open } = await halting(platform, [delta(0, 'one ')], [delta(0, 'two')])
    const stream = read(
      await clientOf().chat.completions.create({ model: agent, messages: question, stream: true }),
      async ({ id, text }) => {
        const [task = ''] = id.split('.')
        if (text !== 'one ') return
        await platform.redis.del(platform.keys.stream(task), platform.keys.state(task))
        open()
      },
    )
    await stream.ended
    expect(stream.text).toBe('one two')
  })
})

type Read = { id: string; text: string; ended: Promise<void> }

/** What a client has of a stream, and its end. */
function read(stream: AsyncIterable<ChatCompletionChunk>, onChunk: (read: Read) => void | Promise<void>): Read {
  const own: Read = { id: '', text: '', ended: Promise.resolve() }
  own.ended = (async () => {
    for await (const { id, choices } of stream) {
      own.id = id
      own.text += choices[0]?.delta.content ?? ''
      await onChunk(own)
    }
  })()
  return own
}

function clientOf(api = 0): OpenAI {
  return new OpenAI({ apiKey: 'none', baseURL: `${platform.urls[api]}/openai/v1` })
}
