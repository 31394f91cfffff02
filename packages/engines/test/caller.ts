/** A program that starts an engine, for tests that kill it: `caller.ts redis|postgres <options as JSON>`. Prints the outcome in one line. */
import { type EngineOptions, startPostgres, startRedis } from '../src/index.ts'

const [engine, options] = process.argv.slice(2)
const start = engine === 'redis' ? startRedis : startPostgres
const keepAlive = setInterval(() => {}, 60_000)

try {
  console.log(JSON.stringify({ started: await start({ path: process.env.PATH, ...(JSON.parse(options ?? '') as EngineOptions) }) }))
} catch (error) {
  console.log(JSON.stringify({ failed: error instanceof Error ? error.message : String(error) }))
  clearInterval(keepAlive)
}
