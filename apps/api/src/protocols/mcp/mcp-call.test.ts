import { type Event, toolRequest } from '@rivulet/protocol'
import { expect, test } from 'vitest'
import { logOf, take, task } from '../../../../../test/support/logs/log-entries.ts'
import { mcpCall } from './mcp-call.ts'

test('a call that joins a running turn gets progress for the steps that follow, and not for those before', async () => {
  const dialect = mcpCall({ turnNumber: 2, progressToken: 'p', respond: () => ({}), read: async () => null })
  const stream = await dialect.open({ task })
  const ids = { task, turn: 1, at: 1, attempt: 1 }
  const events: Event[] = [
    { type: 'turn.queued', ...ids, attempt: 0 },
    { type: 'turn.started', ...ids, firstIndex: 0 },
    { type: 'message.started', ...ids, index: 0, author: 'agent', content: toolRequest('a', 'first') },
    { type: 'message.finished', ...ids, index: 0, status: 'complete' },
    { type: 'turn.queued', ...ids, turn: 2, attempt: 0 },
    { type: 'turn.joined', ...ids, turn: 2, into: 1, index: 1 },
    { type: 'message.started', ...ids, index: 1, author: 'agent', content: toolRequest('b', 'second') },
    { type: 'message.finished', ...ids, index: 1, status: 'complete' },
  ]
  const notices = take(stream, logOf(events))
  expect(notices).toEqual([
    { jsonrpc: '2.0', method: 'notifications/progress', params: { progressToken: 'p', progress: 1, message: 'Calls second' } },
  ])
})
