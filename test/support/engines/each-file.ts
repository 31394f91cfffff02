/**
 * What every test file with engines does when a test fails, and when it ends (vitest's setupFiles). It runs for each file, unlike the modules that
 * tests import, because the files of one process share those.
 */
import { afterAll, beforeEach } from 'vitest'
import { expectNoConnections } from './connections.ts'
import { endFile, reportFailure } from './file-end.ts'

let hasFailed = false

beforeEach(({ onTestFailed }) => {
  onTestFailed(() => {
    hasFailed = true
    reportFailure()
  })
})

afterAll(async () => {
  await endFile(hasFailed)
  await expectNoConnections()
})
