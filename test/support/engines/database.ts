/**
 * A database and a key prefix for each test file, so that files can share the run's servers.
 *
 * Databases are copies of one that was migrated once per run. They are dropped when the file has passed; that of a failing file stays, for
 * the owner of the run's folder.
 */
import { randomBytes } from 'node:crypto'
import { basename } from 'node:path'
import { migrate } from '@rivulet/api/migrate'
import { createTestDatabases, type TestDatabase, type TestDatabases } from '@rivulet/engines'
import { expect, inject } from 'vitest'
import { onFileEnd } from './file-end.ts'

let databases: TestDatabases | null = null
let created: TestDatabase[] = []

/** Closed connections are the caller's duty: a database that is still in use cannot be dropped, and fails the file. */
export async function createTestDatabase(): Promise<{ url: string }> {
  databases ??= createTestDatabases({ url: inject('postgresUrl'), migrate })
  onFileEnd(closeDatabases)
  const database = await databases.create(fileName())
  created.push(database)
  return { url: database.url }
}

async function closeDatabases(hasFailed: boolean): Promise<void> {
  const [closing, ofFile] = [databases, created]
  databases = null
  created = []
  try {
    if (!hasFailed) for (const database of ofFile) await database.drop()
  } finally {
    await closing?.close()
  }
}

/** For every key that a test file writes, and everything it listens to. */
export function keyPrefix(): string {
  return `${fileName()}:${randomBytes(4).toString('hex')}:`
}

function fileName(): string {
  return basename(expect.getState().testPath ?? 'test').replace(/\.test\.ts$/, '')
}
