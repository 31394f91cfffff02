/**
 * The usage of turns, from the log and from workers to the rows of the bill. The log is folded before an attempt ends, parks or is taken from its worker;
 * what was in a log that was lost before that is known only as far as steps and workers have reported it.
 */
import {
  costOf,
  type Message,
  type Prices,
  type TurnId,
  tokensOf,
  toStorableText,
  type Usage,
  type UsageRecord,
  usageRecordsOf,
} from '@rivulet/protocol'
import type { Database, Transaction } from '../store/connection/database.ts'
import { recordUsage, type UsageRow } from '../store/usage/record-usage.ts'
import type { Metrics } from '../telemetry/metrics.ts'

/** Names of counts in one record, and the greatest count: no sum of a bill can overflow. */
const maxNames = 20
const maxName = 60
const maxCount = 1e15

export type TurnUsage = {
  /** Stores what the messages of an attempt used. */
  fold(turnId: TurnId, messages: readonly Message[]): Promise<void>
  /** @param tx a transaction to store it in */
  record(turnId: TurnId, records: readonly UsageRecord[], tx?: Transaction): Promise<void>
}

export function createTurnUsage({ db, prices, metrics }: { db: Database; prices: Prices; metrics: Metrics }): TurnUsage {
  return { fold: (turnId, messages) => record(turnId, usageRecordsOf(messages)), record }

  async function record(turnId: TurnId, records: readonly UsageRecord[], tx: Database | Transaction = db): Promise<void> {
    const stored = await recordUsage(
      tx,
      turnId,
      records.map(given => toRow(given, prices)),
    )
    for (const { agent, model, tokens } of stored)
      metrics.tokens.inc({ agent: metrics.agentLabel(agent), model: metrics.modelLabel(model ?? 'unknown') }, tokens)
  }
}

function toRow({ id, model: given, usage: reported }: UsageRecord, prices: Prices): UsageRow {
  const model = given === undefined ? undefined : toStorableText(given)
  const usage = countsOf(reported)
  return { id: toStorableText(id), model: model || null, usage, tokens: tokensOf(usage), cost: costOf(prices, model, usage) }
}

function countsOf(usage: Usage): Usage {
  const named = Object.entries(usage).filter(([name]) => name.length <= maxName && toStorableText(name) === name)
  return Object.fromEntries(named.slice(0, maxNames).map(([name, count]) => [name, Math.min(Math.max(count, 0), maxCount)]))
}
