/** A turn ends in one of two ways, the short and the long. Result and tables are the same. */
import { createTaskBody } from '@rivulet/contract/tasks'
import type { Message } from '@rivulet/protocol'
import { eq } from 'drizzle-orm'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { anonymous } from '../../../test/anonymous.ts'
import { openStore } from '../../../test/open-store.ts'
import type { DatabaseHandle } from '../connection/database.ts'
import { messages, outbox, tasks, turns } from '../schema.ts'
import { createTaskAcceptance } from '../tasks/accept/accept-tasks.ts'
import { claimTurn } from './claim-turn.ts'
import type { Outcome } from './end-turn.ts'
import { createEndAtOnce, createEndStepwise, type FinishResult, finishTurn, type Way } from './finish-turn.ts'

const tenant = 'default'
let database: DatabaseHandle
beforeAll(async () => {
  database = await openStore()
})
afterAll(() => database.close())

const usage = { inputTokens: 9_007_199_254_740_991, outputTokens: 0 }
const error = { code: 'agent_error', message: '"quoted" \\ and ü, 🙂, \u2028' }
const completed: Outcome = { status: 'completed', stopReason: 'stop', usage }
const failed: Outcome = { status: 'failed', stopReason: 'error', error, detail: "what was 'thrown', ü" }
const canceled: Outcome = { status: 'canceled', stopReason: 'aborted' }

type History = {
  outcome: Outcome
  before?: Partial<typeof turns.$inferInsert>
  canceling?: boolean
  epoch?: number
  claim?: string
  said?: Partial<Message>[]
}

test.each<[string, History, { isShort: boolean }]>([
  ['is done', { outcome: completed, said: [{}, { usage, metadata: { deep: [{ n: 1e21 }, 0.1, null] } }] }, { isShort: true }],
  ['is done and has said nothing', { outcome: completed }, { isShort: true }],
  ['has failed for good', { outcome: failed, said: [{ status: 'failed', stopReason: 'error', error }] }, { isShort: true }],
  ['is canceled', { outcome: canceled, canceling: true, before: { canceling: true }, said: [{ status: 'aborted' }] }, { isShort: true }],
  [
    'is canceled between attempts',
    { outcome: canceled, canceling: true, before: { canceling: true, status: 'queued' } },
    { isShort: true },
  ],
  ['belongs to another worker by now', { outcome: completed, epoch: 1 }, { isShort: false }],
  ['is held under another claim', { outcome: completed, claim: 'another' }, { isShort: false }],
  ['is held under this claim', { outcome: completed, claim: 'this' }, { isShort: true }],
  ['is being canceled by another', { outcome: completed, before: { canceling: true } }, { isShort: false }],
  ['was given back', { outcome: completed, before: { status: 'queued' } }, { isShort: false }],
  ['has ended', { outcome: completed, before: { status: 'completed' } }, { isShort: false }],
  ['says what cannot be stored', { outcome: completed, said: [{ index: 0 }, { index: 0 }] }, { isShort: true }],
])('a turn that %s ends the same both ways', async (_, history, { isShort }) => {
  let taken = 0
  const [endAtOnce, endStepwise] = [createEndAtOnce(database.db), createEndStepwise(database.db)]
  const counted: Way = async (...args) => {
    const result = await endAtOnce(...args)
    if (result) taken += 1
    return result
  }
  expect(await run(history, [counted, endStepwise])).toEqual(await run(history, [endStepwise]))
  expect(taken).toBe(isShort ? 1 : 0)
})

async function run({ outcome, before, canceling = false, epoch = 2, claim: claimed, said = [] }: History, ways: Way[]): Promise<unknown> {
  const { db, databaseFor } = database
  const accepted = await createTaskAcceptance(databaseFor).accept(tenant, createTaskBody.parse({ agent: 'echo', input: 'hello' }), null)
  const turnId = accepted?.accepted.turn.id ?? ''
  const claim = await claimTurn(db, { turnId, claim: 'this', worker: 'w', leaseMs: 60_000 })
  if (claim.result !== 'claimed') throw new Error('It was not claimed')
  const { task, firstIndex } = claim.claimed.turn
  if (before) await db.update(turns).set(before).where(eq(turns.id, turnId))
  const stored = said.map((part, i) => message({ task, index: firstIndex + i, ...part }))
  const result: FinishResult = await finishTurn(
    db,
    { turnId, tenant, epoch, canceling, ...(claimed && { claim: claimed }) },
    { outcome, messages: stored },
    ways,
  )
  return anonymous({
    result,
    tasks: await db.select().from(tasks).where(eq(tasks.id, task)),
    turns: await db.select().from(turns).where(eq(turns.task, task)),
    messages: await db.select().from(messages).where(eq(messages.task, task)).orderBy(messages.index),
    outbox: (await db.select().from(outbox).where(eq(outbox.turn, turnId))).length,
  })
}

function message(part: Partial<Message>): Message {
  return {
    ...{ task: '', index: 0, turn: 1, attempt: 1, author: 'agent', metadata: {}, status: 'complete' },
    content: { type: 'text', text: 'tab\t, "quotes", ü, 🙂', format: 'plain' },
    createdAt: new Date().toISOString(),
    ...part,
  }
}
