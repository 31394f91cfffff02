/** `rivulet start` and `rivulet dev`: everything in one terminal, until Ctrl-C. */
import { defaultUrl } from '@rivulet/runtime/environment'
import type { Command } from 'commander'
import { readConfig } from '../config.ts'
import type { Context } from '../context.ts'
import { openConsole } from '../platform/console-page.ts'
import { startPlatform } from '../platform/platform.ts'
import { createPlatformLog } from '../platform/platform-log.ts'
import { requireFreePort } from '../platform/port-holder.ts'

export function addStartCommands(program: Command, context: Context): void {
  add('start', 'start engines, API and a worker with the example agents, or with those that these files export').option(
    '--watch',
    'restart what a change of the sources touches',
  )
  add('dev', 'the same, restarting what a change touches')

  function add(name: 'start' | 'dev', description: string): Command {
    return program
      .command(name)
      .description(description)
      .argument('[files...]', 'files with agents')
      .option('--json', 'write every line as JSON')
      .action((files: string[], options: { watch?: boolean; json?: boolean }) =>
        run(context, files, { isWatching: name === 'dev' || options.watch === true, isJson: options.json === true }),
      )
  }
}

async function run(
  context: Context,
  agentFiles: string[],
  { isWatching, isJson }: { isWatching: boolean; isJson: boolean },
): Promise<void> {
  const { environment } = context
  const log = createPlatformLog(context.out, isJson)
  const config = readConfig(environment)
  await requireFreePort(config.host, config.port)
  const platform = await startPlatform({ ...config, ...log, environment, agentFiles, isWatching })
  const opening = openConsole({ apiUrl: platform.url, isWatching, write: log.write })
  const stopped = new Promise<void>((resolve, reject) => {
    // Ctrl-C reaches this process twice: from the terminal and from npm.
    context.onStop(() => {
      log.write('stopping …')
      void opening.then(page => page.close())
      platform.stop().then(resolve, reject)
    })
  })
  const agent = await platform.ready
  const page = await opening
  if (agent) log.write(isJson ? 'Rivulet is ready' : welcome(platform.url, page.url, agentFiles.length > 0 ? agent : 'echo'))
  await stopped
}

function welcome(url: string, pageUrl: string, agent: string): string {
  const elsewhere = url === defaultUrl ? '' : ` --url ${url}`
  return `
Rivulet is ready. Open ${pageUrl} to see your agents work (the API: ${url}/docs), or in another terminal:

  npx rivulet run ${agent} "hello, world"${elsewhere}

  curl -N ${url}/v1/tasks -H 'content-type: application/json' -H 'accept: text/event-stream' -d '{"agent":"${agent}","input":"hello, world"}'

Ctrl-C stops everything.`
}
