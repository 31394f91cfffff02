/** What other event models have besides. The protocol expresses all of it without further events. */
import { describe, expect, test } from 'vitest'
import { composed, fold, logOf, stamp, typesOf } from '../../test/logs.ts'
import { sampleWait } from '../../test/samples.ts'
import { text, toolRequest, toolResponse } from '../entities/content.ts'
import { messageSchema } from '../entities/entities.ts'
import { type Event, eventSchema } from '../events/event.ts'
import { custom, delta, done, full, start } from '../events/update.ts'

describe('features of other event models', () => {
  test('a preliminary output of a tool is a value that the next one replaces', () => {
    const preliminary = (value: string) => delta(0, { type: 'data', value: { status: value } })
    const open = composed(start(0, toolResponse('c', 'f')), preliminary('loading'), preliminary('half'))
    expect(open.messages).toMatchObject([{ status: 'streaming', content: { content: { status: 'half' } } }])
    const closed = composed(start(0, toolResponse('c', 'f')), preliminary('loading'), full(0, toolResponse('c', 'f', 'result')))
    expect(closed.messages).toMatchObject([{ status: 'complete', content: { content: 'result' } }])
  })

  test('transient data, a handoff and a compaction are custom events: ordered, and stored in no message', () => {
    const { events, messages } = composed(
      delta(0, 'a'),
      custom('handoff', { to: 'billing' }),
      custom('compaction', { dropped: 3 }),
      done(0),
    )
    expect(typesOf(events)).toEqual(['message.started', 'message.delta', 'custom', 'custom', 'message.finished'])
    expect(messages).toHaveLength(1)
    expect(JSON.stringify(messages)).not.toMatch(/billing|dropped/)
  })

  test('a tool that the provider ran, and its own fields, are in metadata under its name', () => {
    const metadata = { anthropic: { providerExecuted: true, cache: 'hit' } }
    expect(composed(start(0, toolRequest('c', 'search'), metadata), done(0)).messages[0]?.metadata).toEqual(metadata)
  })

  test('an approval is a turn that waits, and resumes with the response', () => {
    const asking: Event[] = [
      { type: 'turn.started', ...stamp, firstIndex: 0 },
      { type: 'turn.waiting', ...stamp, wait: sampleWait },
    ]
    expect(fold(logOf(asking))).toMatchObject({ status: 'waiting', turns: [{ status: 'waiting' }] })
    const resumed: Event[] = [
      ...asking,
      { type: 'turn.resumed', ...stamp, wait: sampleWait.id, status: 'answered', answer: { action: 'decline', at: sampleWait.createdAt } },
    ]
    expect(fold(logOf(resumed))).toMatchObject({ status: 'running', turns: [{ status: 'running' }] })
  })

  test('a message has its own usage, stop reason and times', () => {
    const { messages } = composed(start(0, text('a')), done(0, { stopReason: 'length', usage: { outputTokens: 3 } }))
    expect(messageSchema.parse(messages[0])).toMatchObject({
      stopReason: 'length',
      usage: { outputTokens: 3 },
      createdAt: expect.any(String),
      finishedAt: expect.any(String),
    })
  })
})

test('the names and fields of events are a contract that this test lists', () => {
  const fields = eventSchema.options.map(({ shape }) => {
    const { type, task: _, turn: __, attempt: ___, at: ____, ...own } = shape
    return [type.value, ...Object.entries(own).map(([name, field]) => (field.safeParse(undefined).success ? `${name}?` : name))].join(' ')
  })
  expect(fields).toEqual([
    'turn.queued input? inputs? omitted?',
    'turn.started firstIndex input? inputs? state?',
    'message.started index author content metadata?',
    'message.delta index delta offset',
    'message.replaced index content metadata?',
    'message.finished index status stopReason? usage? response? error?',
    'turn.discarded from',
    'turn.joined into index',
    'turn.waiting wait more?',
    'turn.resumed wait status answer?',
    'state.changed version value? patch?',
    'child.started child name callId?',
    'child.finished child status',
    'turn.finished status stopReason usage? usageTotal? cost? error?',
    'custom name data index?',
  ])
})
