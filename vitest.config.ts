import { fileURLToPath } from 'node:url'
import { defineConfig } from 'vitest/config'

/** Of a machine that is busy, or ten times slower than another: no test waits for a time, so only one that hangs takes as long as this. */
const patience = { testTimeout: 900_000, hookTimeout: 900_000, expect: { poll: { timeout: 300_000 } } }
const laws = ['test/support/law-seed.ts']
const withEngines = {
  ...patience,
  globalSetup: ['test/support/engines/engines.ts'],
  setupFiles: [...laws, 'test/support/engines/each-file.ts'],
}

const units = [
  'packages/{agent,client,contract,narrator,protocol,runtime,views}/src/**/*.test.{ts,tsx}',
  'apps/{agents,console}/src/**/*.test.{ts,tsx}',
]
const slow = ['**/*.slow.test.ts']

export default defineConfig({
  test: {
    projects: [
      { test: { ...patience, name: 'rules', include: ['test/rules/**/*.test.ts'], maxWorkers: 4 } },
      // Without engines. Here and with engines, files share processes, because loading the same modules for each took longer than its tests.
      { test: { ...patience, name: 'units', include: units, exclude: slow, setupFiles: laws, isolate: false, maxWorkers: 4 } },
      {
        test: {
          ...withEngines,
          name: 'platform',
          include: [
            'packages/{broker,engines,worker}/src/**/*.test.ts',
            'apps/{api,cli}/src/**/*.test.ts',
            'bench/{,measure/,programs/}*.test.ts',
            'examples/**/*.test.ts',
            'test/{browser,flow,readme}/**/*.test.ts',
            'test/faults/{,checker/}*.test.ts',
          ],
          exclude: slow,
          isolate: false,
          // More than cores, because most tests wait: for a lease, a restart, a retry.
          maxWorkers: 4,
        },
      },
      // With other people's SDKs, which it installs first: `npm run test:sdks`. It can be part of a run of the others, which then shares the engines.
      {
        // Our packages import it, and only this folder has it.
        resolve: { alias: { '@ag-ui/client': fileURLToPath(new URL('test/sdks/node_modules/@ag-ui/client', import.meta.url)) } },
        test: { ...withEngines, name: 'sdks', include: ['test/sdks/**/*.test.ts'], maxWorkers: 4 },
      },
      // The packages as npm would publish them, installed into an empty folder: `npm run test:packages`.
      {
        test: {
          name: 'packages',
          globalSetup: [...withEngines.globalSetup, 'test/packages/setup.ts'],
          setupFiles: withEngines.setupFiles,
          include: ['test/packages/*.test.ts'],
          testTimeout: 180_000,
          hookTimeout: 300_000,
          maxWorkers: 1,
          sequence: { groupOrder: 2 },
        },
      },
      // `npm run test:faults`: for as long as its options say.
      { test: { ...withEngines, name: 'faults', include: ['test/faults/demand/*.test.ts'], maxWorkers: 1, sequence: { groupOrder: 2 } } },
      // Minutes of work for both cores: `npm run test:slow`.
      {
        test: {
          ...withEngines,
          name: 'slow',
          include: ['test/slow/**/*.test.ts', '{packages,apps}/*/src/**/*.slow.test.ts'],
          maxWorkers: 1,
          sequence: { groupOrder: 1 },
        },
      },
    ],
  },
})
