#!/usr/bin/env node
import { openStartBundle } from '../../../scripts/start-bundle.mjs'

const [command, ...args] = process.argv.slice(2)
if (command === 'start' && !args.includes('--watch')) {
  const parent = process.ppid
  const program = await openStartBundle().catch(error => {
    console.error(error.message)
    process.exit(1)
  })
  // The parent process was stopped during the build, and could not pass the signal on.
  if (process.ppid !== parent) process.exit(1)
  await import(program)
} else {
  await import('./typescript.mjs')
  await import('../src/main.ts')
}
