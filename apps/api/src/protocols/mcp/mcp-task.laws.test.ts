/** Laws of the tasks of MCP: whatever an agent emits and asks for, and wherever a client subscribes, it ends with what is stored. */
import { hasEnded, type Message, type Turn } from '@rivulet/protocol'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { askingLog } from '../../../../../test/support/logs/asking-log.ts'
import { type Entry, snapshotOf } from '../../../../../test/support/logs/log-entries.ts'
import { mcpTask, noticeOf } from './mcp-task.ts'

const always = (law: (log: Entry[]) => void, numRuns = 30) => fc.assert(fc.property(askingLog, law), { numRuns })

type Stored = { turn: Turn; messages: Message[] }
type Sent = { status: string; inputRequests?: object; result?: { content: { type: string; text?: string }[]; isError?: true } }

test('subscribed at any event, a client has each question while it is open, and the task as it is stored at the end', () => {
  always(log => {
    const all = storedAfterEach(log)
    const final = all.at(-1)
    const whole = listen(all)
    expect(final && whole.at(-1)).toEqual(final && mcpTask(final.turn, final.messages))
    expect(whole.filter(({ status }) => status === 'completed' || status === 'failed' || status === 'cancelled')).toHaveLength(1)
    for (const place of all.keys()) {
      const rest = listen(all.slice(place))
      // The first one is the task as it stands there; what follows is what every other client gets.
      expect(rest.slice(1)).toEqual(rest.length > 1 ? whole.slice(1 - rest.length) : [])
      expect(rest.at(-1)).toEqual(whole.at(-1))
    }
    const asked = whole.map(({ inputRequests = {} }) => Object.keys(inputRequests))
    expect(new Set(asked.flat())).toEqual(new Set(final?.turn.waits?.map(({ id }) => id)))
  })
})

test('the result has every text of the agent, in order, and no text of an attempt that does not count', () => {
  always(log => {
    const { turns, messages } = snapshotOf(log, 'join')
    const [turn] = turns
    if (!turn) throw new Error('There is no turn')
    const { status, result } = mcpTask(turn, messages) as Sent
    const texts = messages.flatMap(({ content }) => (content.type === 'text' && content.text !== '' ? [content.text] : []))
    // Data is shown as JSON, which no text of these logs is.
    const shown = (result?.content ?? []).flatMap(({ text = '' }) => (/^[abc ]+$/.test(text) ? [text] : []))
    if (status === 'completed') expect(shown).toEqual(texts)
    else expect(result).toBeUndefined()
  }, 100)
})

/** The notices that a client gets as the rows change. */
function listen(rows: readonly Stored[]): Sent[] {
  let sentNotice: string | null = null
  return rows.flatMap(({ turn, messages }) => {
    const now = noticeOf(turn)
    if (now === sentNotice) return []
    sentNotice = now
    return [mcpTask(turn, hasEnded(turn.status) ? messages : []) as Sent]
  })
}

/** The turn after each event. Questions that are asked together are committed together. */
function storedAfterEach(log: readonly Entry[]): Stored[] {
  return log.flatMap(({ event }, place) => {
    const { turns, messages } = snapshotOf(log.slice(0, place + 1), 'join')
    const isInside = event.type === 'turn.waiting' && event.more === true
    return isInside ? [] : turns.map(turn => ({ turn, messages }))
  })
}
