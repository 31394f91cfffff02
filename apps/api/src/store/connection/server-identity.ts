/**
 * Notes which Postgres server the rows are on. The feed and the audit log are ordered by numbers of transactions, which each server counts by itself, so
 * after a move `note_server` (`migrations/0034_feed_server.sql`) raises what is added to them. Every connection calls it before its first statement.
 */
import type { ClientBase, Pool } from 'pg'
import { sqlStateOf } from './database-errors.ts'

const undefinedFunction = '42883'

/** Returns whether the server is another one than before. */
export async function noteServer(client: Pick<ClientBase | Pool, 'query'>): Promise<boolean> {
  try {
    const { rows } = await client.query<{ hasMoved: boolean }>('select note_server() as "hasMoved"')
    return rows[0]?.hasMoved ?? false
  } catch (error) {
    // Not migrated yet: the API calls this again after its migrations.
    if (sqlStateOf(error) === undefinedFunction) return false
    throw error
  }
}
