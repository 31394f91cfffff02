/** Tests our adapters with the SDKs they are for, and passes its options on to vitest. Where the SDKs cannot be installed, it says so and tests nothing. */
import { spawnSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'

const root = fileURLToPath(new URL('../..', import.meta.url))
const tools = `${root}node_modules/.bin/`

if (run(process.execPath, 'test/sdks/install.mjs')) {
  const passed = run(`${tools}tsc`, '-p', 'test/sdks') && run(`${tools}vitest`, 'run', '--project', 'sdks', ...process.argv.slice(2))
  process.exitCode = passed ? 0 : 1
}

function run(program, ...args) {
  return spawnSync(program, args, { cwd: root, stdio: 'inherit' }).status === 0
}
