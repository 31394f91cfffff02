/** What the files of a tenant take, as it is counted, is what they take: after any mix of changes, also of those that come together or are undone. */
import { randomUUID } from 'node:crypto'
import { createTaskBody } from '@rivulet/contract/tasks'
import { type FileId, RivuletError } from '@rivulet/protocol'
import { and, eq, sql } from 'drizzle-orm'
import fc from 'fast-check'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { openStore } from '../../../test/open-store.ts'
import type { DatabaseHandle } from '../connection/database.ts'
import { everyTenant, type Tenant } from '../connection/tenant.ts'
import { files, looseFiles, tasks } from '../schema.ts'
import { createTask } from '../tasks/accept/create-task.ts'
import { referToFiles } from './file-references.ts'
import { beginFile, completeFile, foldSums, loosenUnused, removeFile, sumFiles } from './file-rows.ts'

const tenants = ['acme', 'rival'] as const
let store: DatabaseHandle
beforeAll(async () => {
  store = await openStore()
})
afterAll(() => store.close())

const changes = {
  /** With the quota and without one, for a task or for none. */
  upload: (tenant: Tenant, size: number) => upload(tenant, size),
  uploadForTask: async (tenant: Tenant, size: number) => {
    const id = await upload(tenant, size)
    const body = createTaskBody.parse({ agent: 'echo' })
    const create = store.databaseFor(tenant).transaction(async tx => {
      const { task } = await createTask(tx, tenant, body, 10)
      await referToFiles(tx, task, [{ type: 'media', mimeType: 'text/plain', file: id }])
    })
    await create.catch(error => {
      // Another lane has removed the file meanwhile.
      if (!(error instanceof RivuletError)) throw error
    })
  },
  undone: (tenant: Tenant, size: number) =>
    store
      .databaseFor(tenant)
      .transaction(async tx => {
        await tx.insert(files).values(fileOf(tenant, size))
        throw new Error('undone')
      })
      .catch(() => {}),
  remove: async (tenant: Tenant) => {
    const [file] = await store.db
      .select()
      .from(files)
      .where(and(eq(files.tenant, tenant), eq(files.isUsed, false)))
      .limit(1)
    if (file) await removeFile(store.databaseFor(tenant), tenant, file.id, async () => {}).catch(() => {})
  },
  removeTasks: async (tenant: Tenant, size: number) => {
    const some = sql`(select id from tasks where tenant = ${tenant} limit ${1 + (size % 3)})`
    await store.databaseFor(tenant).delete(tasks).where(sql`${tasks.id} in ${some}`)
  },
  expire: async () => {
    await store.db
      .update(files)
      .set({ createdAt: new Date(0) })
      .where(sql`random() < 0.3`)
    await loosenUnused(store.db, 10)
  },
  fold: () => foldSums(store.db, 100),
} satisfies Record<string, (tenant: Tenant, size: number) => Promise<unknown>>

function fileOf(tenant: Tenant, size: number) {
  return {
    ...{ id: randomUUID() as FileId, tenant, name: null, mimeType: 'text/plain', size, sha256: '', store: 'postgres' as const },
    ...{ uploadedFor: null, isSpill: false, isUsed: false },
  }
}

async function upload(tenant: Tenant, size: number): Promise<FileId> {
  const file = fileOf(tenant, size)
  const db = store.databaseFor(tenant)
  await beginFile(db, tenant, file.id, 'postgres')
  const most = size % 2 === 0 ? Number.POSITIVE_INFINITY : 1_000_000
  await db.transaction(tx => completeFile(tx, file, most))
  return file.id
}

async function counted(): Promise<unknown> {
  return Promise.all([...tenants, everyTenant].map(tenant => sumFiles(store.databaseFor(tenant), tenant)))
}

async function summed(): Promise<unknown> {
  const rows = await store.db.select({ tenant: files.tenant, size: files.size }).from(files)
  return [...tenants, everyTenant].map(tenant => {
    const sizes = rows.filter(row => tenant === everyTenant || row.tenant === tenant).map(({ size }) => size)
    return { count: sizes.length, bytes: sizes.reduce((sum, size) => sum + size, 0) }
  })
}

test('is the sum of its files after any changes, side by side', async () => {
  const change = fc.tuple(fc.constantFrom(...Object.keys(changes)), fc.constantFrom(...tenants), fc.integer({ min: 0, max: 1_000 }))
  const lanes = fc.array(fc.array(change, { maxLength: 12 }), { minLength: 1, maxLength: 4 })
  await fc.assert(
    fc.asyncProperty(lanes, async given => {
      await Promise.all(
        given.map(async lane => {
          for (const [name, tenant, size] of lane) await changes[name as keyof typeof changes](tenant, size)
        }),
      )
      expect(await counted()).toEqual(await summed())
      await foldSums(store.db, 100)
      expect(await counted()).toEqual(await summed())
      const { rows } = await store.db.execute(sql`select tenant from file_sums group by tenant having count(*) > 1`)
      expect(rows).toEqual([])
    }),
    { numRuns: 15 },
  )
  expect((await store.db.select().from(looseFiles)).length).toBeGreaterThan(0)
})
