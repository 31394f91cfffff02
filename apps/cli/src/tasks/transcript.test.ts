import type { Content, Message } from '@rivulet/client'
import { describe, expect, test } from 'vitest'
import { createPen } from '../terminal/pen.ts'
import { createTranscript, type Story, type TranscriptOptions } from './transcript.ts'

const text = (value: string): Content => ({ type: 'text', text: value, format: 'plain' })
const thought = (value: string): Content => ({ type: 'reasoning', summary: [], content: [value] })
const request = (name: string, args: object): Content => ({ type: 'tool_request', callId: name, name, arguments: { ...args } })
const response = (name: string, content: string | null, isError = false): Content => ({
  type: 'tool_response',
  callId: name,
  name,
  content,
  isError,
})

describe('words', () => {
  test('are written as they come, and once', () => {
    const { transcript, said } = made()
    transcript.show(story([open(0, text('hel'))]))
    transcript.show(story([open(0, text('hello wor'))]))
    expect(said()).toBe('hello wor')
    transcript.show(story([closed(0, text('hello world'))]))
    transcript.show(story([closed(0, text('hello world'))], 'completed'))
    transcript.end()
    expect(said()).toBe('hello world\n')
  })

  test('of two messages at once are read one after the other', () => {
    const { transcript, said } = made()
    transcript.show(story([open(0, text('a')), open(1, text('x'))]))
    transcript.show(story([open(0, text('ab')), closed(1, text('xy'))]))
    expect(said()).toBe('ab')
    transcript.show(story([closed(0, text('abc')), closed(1, text('xy'))]))
    expect(said()).toBe('abc\nxy\n')
  })

  test('of an agent cannot steer the terminal, not even in pieces', () => {
    const { transcript, said } = made()
    transcript.show(story([open(0, text('a\u001b'))]))
    transcript.show(story([open(0, text('a\u001b]0;own'))]))
    transcript.show(story([closed(0, text('a\u001b]0;owned\u0007b\u001b[2J'))]))
    expect(said()).toBe('ab\n')
  })

  test('that are replaced as a whole are written anew; those that are only confirmed are not', () => {
    const { transcript, said } = made()
    transcript.show(story([open(0, text('draft'))]))
    transcript.show(story([closed(0, text('final'))]))
    transcript.show(story([closed(0, text('final')), open(1, text('same'))]))
    transcript.show(story([closed(0, text('final')), closed(1, text('same'))]))
    expect(said()).toBe('draft\nfinal\nsame\n')
  })
})

describe('what happens around the words', () => {
  test('is noted apart from them', () => {
    const { transcript, said, noted } = made()
    const messages = [
      closed(0, thought('let me see')),
      closed(1, request('search', { query: 'redis' })),
      closed(2, response('search', 'found'), { finishedAt: '2030-01-01T00:00:01.200Z' }),
      closed(3, text('It is fast.')),
    ]
    transcript.show(story(messages))
    expect(said()).toBe('It is fast.\n')
    expect(noted()).toBe('let me see\n→ search {"query":"redis"}\n✓ search 1.2 s\n')
  })

  test('a tool that fails says why, on one line; one that was stopped does not count as either', () => {
    const { transcript, noted } = made()
    transcript.show(story([closed(0, response('a', 'no\nnet\u001b[2Jwork', true)), closed(1, response('b', null), { status: 'aborted' })]))
    expect(noted()).toBe('✗ a 0 ms: no network\n■ b 0 ms\n')
  })

  test('a status line tells what is being waited for', () => {
    const { transcript, noted } = made({}, { isTTY: true })
    transcript.show(story([], 'queued'))
    expect(noted()).toContain('waiting for a worker')
    transcript.show(story([open(0, response('search', null)), open(1, response('read', null))]))
    expect(noted()).toMatch(/search 0 ms, read 0 ms$/)
    transcript.end()
    expect(noted()).toMatch(/\r\S+$/)
  })

  test('a message that failed says why; one that was aborted leaves that to its turn', () => {
    const { transcript, noted } = made()
    const error = { code: 'x', message: 'no luck' }
    transcript.show(story([closed(0, text('a'), { status: 'failed', error }), closed(1, text('b'), { status: 'aborted', error })]))
    expect(noted()).toBe('✗ no luck\n')
  })

  test('a tool that is done is no longer waited for', () => {
    const { transcript, noted } = made({}, { isTTY: true })
    transcript.show(story([open(0, response('search', null))]))
    const before = noted().length
    transcript.show(story([closed(0, response('search', 'found'))]))
    transcript.end()
    expect(
      noted()
        .slice(before)
        .match(/search/g),
    ).toHaveLength(1)
  })

  test('thoughts are dim where there is color', () => {
    const { transcript, noted } = made({}, {}, { FORCE_COLOR: '1' })
    transcript.show(story([open(0, thought('hm'))]))
    expect(noted()).toBe('\u001b[2mhm\u001b[22m')
  })

  test('data and media are named', () => {
    const { transcript, said } = made()
    transcript.show(story([closed(0, { type: 'data', data: { a: 1 } }), closed(1, { type: 'media', mimeType: 'image/png', data: 'AAAA' })]))
    expect(said()).toBe('{"a":1}\n[image/png 3 bytes]\n')
  })
})

describe('a turn that is tried again', () => {
  test('is written anew, after a line that says so', () => {
    const { transcript, said, noted } = made()
    const input = closed(0, text('hi'), { author: 'user' })
    transcript.show(story([input, open(1, text('first try'))]))
    transcript.show(story([input], 'running', 2))
    transcript.show(story([input, open(1, text('second'), 2)], 'running', 2))
    transcript.show(story([input, closed(1, text('second try'), { attempt: 2 })], 'completed', 2))
    expect(said()).toBe('first try\nsecond try\n')
    expect(noted()).toBe('› hi\n↻ attempt 2\n')
  })

  test('is noticed also when a snapshot already has its messages', () => {
    const { transcript, said } = made()
    transcript.show(story([closed(0, text('a')), open(1, text('b'))]))
    transcript.show(
      story([closed(0, text('c'), { attempt: 2 }), closed(1, text('d'), { attempt: 2 }), open(2, text('e'), 2)], 'running', 2),
    )
    expect(said()).toBe('a\nb\nc\nd\ne')
  })

  test('leaves the turns before it alone', () => {
    const { transcript, said } = made({ hidesInput: true })
    const past = [closed(0, text('one'), { turn: 1 }), closed(1, text('more'), { turn: 2, author: 'user' })]
    transcript.show(story([...past, closed(2, text('two'), { turn: 2 })]))
    transcript.show(story([...past, closed(2, text('zwei'), { turn: 2, attempt: 2 })], 'completed', 2))
    expect(said()).toBe('one\ntwo\nzwei\n')
  })
})

test('a transcript that begins later prints what is new, also of a message that is half-way', () => {
  const { transcript, said } = made()
  transcript.skip(story([closed(0, text('old')), open(1, text('ha'))]))
  transcript.show(story([closed(0, text('old')), open(1, text('half'))]))
  transcript.show(story([closed(0, text('old')), closed(1, text('half')), closed(2, text('new'))]))
  expect(said()).toBe('lf\nnew\n')
})

test('what a snapshot leaves out is said to be left out', () => {
  const { transcript, said, noted } = made()
  transcript.show(story([closed(7, text('late'))]))
  expect([noted(), said()]).toEqual(['… what was said before is left out\n', 'late\n'])
})

test('the input can be left out', () => {
  const { transcript, noted } = made({ hidesInput: true })
  transcript.show(story([closed(0, text('hi'), { author: 'user' })]))
  expect(noted()).toBe('')
})

function made(
  options: Partial<TranscriptOptions> = {},
  shape: { isTTY?: boolean } = {},
  environment: Record<string, string> = { NO_COLOR: '1' },
) {
  const written = { said: '', noted: '' }
  const said = createPen({ ...shape, write: piece => (written.said += piece) }, environment)
  const noted = createPen({ ...shape, write: piece => (written.noted += piece) }, environment)
  const transcript = createTranscript({ said, noted, clock: () => 0, ...options })
  return { transcript, said: () => written.said, noted: () => written.noted }
}

function story(messages: Message[], status: Story['status'] = 'running', attempt = 1): Story {
  return { status, messages, attempt }
}

function open(index: number, content: Content, attempt = 1): Message {
  return { ...message(index, content), status: 'streaming', attempt }
}

function closed(index: number, content: Content, fields: Partial<Message> = {}): Message {
  return { ...message(index, content), finishedAt: '2030-01-01T00:00:00.000Z', ...fields }
}

function message(index: number, content: Content): Message {
  const createdAt = '2030-01-01T00:00:00.000Z'
  return { task: 't', index, turn: 1, attempt: 1, author: 'agent', content, metadata: {}, status: 'complete', createdAt }
}
