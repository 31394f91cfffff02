/** `rivulet`: what the npm scripts of this repository run. */
import { readConfig } from './config.ts'
import { migrate } from './migrate.ts'
import { start } from './start.ts'

const write = (line: string) => console.log(line)

try {
  const [command, ...flags] = process.argv.slice(2)
  const options = { ...readConfig(process.env), environment: process.env, write }
  if (command === 'start') await run(flags.includes('--watch'))
  else if (command === 'migrate') await migrate(options)
  else throw new Error('Usage: rivulet start [--watch] | migrate')

  async function run(isWatching: boolean): Promise<void> {
    const started = await start({ ...options, isWatching })
    for (const signal of ['SIGTERM', 'SIGINT'] as const) {
      // Ctrl-C reaches this process twice: from the terminal and from npm.
      process.on(signal, async () => {
        write('stopping …')
        await started.stop()
        process.exit(0)
      })
    }
    await started.ready
    write(welcome(started.url))
  }
} catch (error) {
  console.error(error instanceof Error ? error.message : error)
  process.exit(1)
}

function welcome(url: string): string {
  return `
Rivulet is ready at ${url} (its API: ${url}/docs). In another terminal:

  curl -N ${url}/v1/tasks -H 'content-type: application/json' -H 'accept: text/event-stream' -d '{"agent":"echo","input":"hello, world"}'

Ctrl-C stops everything.`
}
