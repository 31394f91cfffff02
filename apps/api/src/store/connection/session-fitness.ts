/**
 * Checks that a connection to Postgres is one session of Postgres. Behind a pooler in transaction mode it is not: the setting of one tenant would reach the
 * requests of another, and locks and named statements would be lost.
 */
import { randomUUID } from 'node:crypto'
import type { Pool } from 'pg'

/** A pooler gives a free session to the next client, unless other clients ask in between. */
const tries = 3

const unfit =
  'DATABASE_URL leads to a pooler in transaction mode, which mixes the sessions of its clients: use session mode (pool_mode = session in PgBouncer), or the address of Postgres itself'

/** Null if they are fit. Throws if Postgres is unavailable. */
export async function whySessionsAreUnfit(pool: Pick<Pool, 'connect'>): Promise<string | null> {
  for (let i = 0; i < tries; i += 1) if (!(await areSeparate(pool))) return unfit
  return null
}

/** Whether a setting of one connection stays with it, and does not reach another. */
async function areSeparate(pool: Pick<Pool, 'connect'>): Promise<boolean> {
  const one = await pool.connect()
  try {
    const other = await pool.connect()
    try {
      const mark = randomUUID()
      await one.query("select set_config('rivulet.session', $1, false)", [mark])
      const read = async (client: typeof one) =>
        (await client.query("select current_setting('rivulet.session', true) as mark")).rows[0]?.mark
      return (await read(other)) !== mark && (await read(one)) === mark
    } finally {
      other.release()
    }
  } finally {
    one.release()
  }
}
