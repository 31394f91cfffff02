/** The store of a test file, on a database of its own, with an agent to create tasks for. The test file that opens it closes it. */
import { createTestDatabase } from '../../../test/support/engines/database.ts'
import { type DatabaseHandle, openDatabase } from '../src/store/connection/database.ts'

export async function openStore(): Promise<DatabaseHandle> {
  const { url } = await createTestDatabase()
  const database = openDatabase({ url, onError: () => {} })
  await database.db.execute("insert into agents values ('echo', '')")
  return database
}
