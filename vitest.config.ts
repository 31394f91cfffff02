import { defineConfig } from 'vitest/config'

const withEngines = { globalSetup: ['test/support/engines.ts'], testTimeout: 120_000, hookTimeout: 180_000 }

export default defineConfig({
  test: {
    projects: [
      { test: { name: 'rules', include: ['test/rules/**/*.test.ts'], maxWorkers: 2 } },
      {
        test: {
          ...withEngines,
          name: 'platform',
          include: ['packages/*/src/**/*.test.ts', 'apps/*/src/**/*.test.ts', 'test/{flow,readme}/**/*.test.ts'],
          maxWorkers: 2,
        },
      },
      // Minutes of work for both cores: `npm run test:slow`.
      { test: { ...withEngines, name: 'slow', include: ['test/slow/**/*.test.ts'], maxWorkers: 1, sequence: { groupOrder: 1 } } },
    ],
  },
})
