/** Random secrets of the installation: the same for every process on this database, and known to no person. */
import { randomBytes } from 'node:crypto'
import { eq } from 'drizzle-orm'
import type { Database } from '../connection/database.ts'
import { secrets } from '../schema.ts'

/** The secret of this name; the first process that asks makes it. */
export async function readSecret(db: Database, name: string): Promise<Buffer> {
  const value = randomBytes(32).toString('base64')
  await db.insert(secrets).values({ name, value }).onConflictDoNothing()
  const [row] = await db.select().from(secrets).where(eq(secrets.name, name))
  if (!row) throw new Error(`The secret ${name} was not stored`)
  return Buffer.from(row.value, 'base64')
}
