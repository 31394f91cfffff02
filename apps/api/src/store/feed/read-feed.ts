/**
 * Reads the feed in its order: by transaction, then by number. Entries of a transaction are read only once every transaction before it has ended, so an
 * entry that is committed late is never behind the place of a reader. The price: a long transaction delays the entries that follow it.
 */

import type { FeedEntry, FeedEntryType } from '@rivulet/contract/feed'
import { type Cursor, epochOf, formatCursor, origin, RivuletError, seqOf } from '@rivulet/protocol'
import { and, asc, eq, inArray, lt, type SQL, sql } from 'drizzle-orm'
import type { Database, Transaction } from '../connection/database.ts'
import { fromJsonRow, type JsonRow } from '../connection/json-rows.ts'
import { msAgo } from '../connection/moments.ts'
import { isOf, type Tenant } from '../connection/tenant.ts'
import { feed, feedServer } from '../schema.ts'

export type FeedFilter = { agent?: string | undefined; types?: readonly FeedEntryType[] | undefined }
export type FeedRequest = FeedFilter & { after: Cursor; limit: number }
export type TenantEntry = FeedEntry & { seq: Cursor; tenant: Tenant }

/**
 * `next` is the place to read on from. It is also behind the entries that the filter left out, so that no reader pays for them twice. `isFull`: there
 * may be more already.
 */
export type FeedRead = { entries: TenantEntry[]; next: Cursor; isFull: boolean }

/** Entries that one page looks at, however few of them its filter leaves. */
const maxLookedAt = 10_000

/** How long entries are kept. */
const feedRetentionMs = 7 * 24 * 3_600_000

/** The oldest transaction that still runs. Those before it have ended, so no further entry of theirs can appear. All of earlier servers have ended. */
export const horizon = sql`((pg_snapshot_xmin(pg_current_snapshot())::text)::bigint + (select shift from ${feedServer}))`

/** @param tenant `everyTenant` reads the entries of all tenants. */
export async function readFeed(db: Database | Transaction, tenant: Tenant, { after, limit, agent, types }: FeedRequest): Promise<FeedRead> {
  const isVisible = and(isOf(tenant, feed.tenant), isBehind(after), sql`${feed.xid} < ${horizon}`)
  const isWanted = and(agent === undefined ? sql`true` : eq(feed.agent, agent), types && inArray(feed.type, [...types]))
  // One statement, so that the entries and the place behind them are of the same moment.
  const { rows } = await db.execute<{ horizon: string; looked: number; last: JsonRow | null; entry: JsonRow | null }>(sql`
    with visible as materialized (select * from ${feed} where ${isVisible} order by ${feed.xid}, ${feed.seq} limit ${maxLookedAt}),
    page as (select * from visible as ${feed} where ${isWanted} order by ${feed.xid}, ${feed.seq} limit ${limit}),
    last as (select * from visible order by xid desc, seq desc limit 1)
    select ${horizon} as horizon, (select count(*)::int from visible) as looked, (select to_json(last) from last) as last, to_json(page) as entry
    from (select) as always left join page on true order by page.xid, page.seq
  `)
  const entries = rows.flatMap(({ entry }) => (entry ? [toEntry(fromJsonRow(feed, entry))] : []))
  const [{ looked = 0, last = null, horizon: now = 0 } = {}] = rows
  if (entries.length === limit) return { entries, next: entries.at(-1)?.seq ?? after, isFull: true }
  if (looked === maxLookedAt && last) return { entries, next: formatCursor(Number(last.xid), Number(last.seq)), isFull: true }
  return { entries, next: Number(now) > epochOf(after) ? formatCursor(Number(now), 0) : after, isFull: false }
}

/** Rejects a place before the oldest entry that is kept, because entries behind it may be missing. The origin means: what is kept. */
export async function requireKept(db: Database, after: Cursor): Promise<void> {
  if (after === origin) return
  const [oldest] = await db
    .select({ xid: feed.xid, isOld: lt(feed.at, msAgo(feedRetentionMs)) as SQL<boolean> })
    .from(feed)
    .orderBy(asc(feed.xid), asc(feed.seq))
    .limit(1)
  if (oldest?.isOld && epochOf(after) < oldest.xid)
    throw new RivuletError('feed_expired', 'The feed no longer has the entries after this place; read on from 0-0, and list the tasks anew')
}

/**
 * Removes entries that are older than the retention, up to `limit` of them; true when there may be more. The last old entry stays: it shows how far the
 * feed was removed.
 */
export async function forgetFeed(db: Database, limit: number): Promise<boolean> {
  const { rowCount } = await db.execute(sql`
    with first as (select xid, seq, at from ${feed} order by xid, seq limit ${limit + 1}),
      edge as (select xid, seq from first where at < ${msAgo(feedRetentionMs)} order by xid desc, seq desc limit 1)
    delete from ${feed} using edge where (${feed.xid}, ${feed.seq}) < (edge.xid, edge.seq)
  `)
  return rowCount === limit
}

function isBehind(place: Cursor): SQL {
  return sql`(${feed.xid}, ${feed.seq}) > (${epochOf(place)}::bigint, ${seqOf(place)}::bigint)`
}

function toEntry({ xid, seq, at, turn, attempt, status, errorCode, onEnd: _, ...row }: typeof feed.$inferSelect): TenantEntry {
  return {
    ...row,
    seq: formatCursor(xid, seq),
    at: at.toISOString(),
    ...(turn !== null && { turn }),
    ...(attempt !== null && { attempt }),
    ...(status !== null && { status }),
    ...(errorCode !== null && { error: { code: errorCode } }),
  }
}
