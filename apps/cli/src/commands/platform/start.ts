/** `rivulet start` and `rivulet dev`: everything in one terminal, until Ctrl-C. */
import { existsSync } from 'node:fs'
import type { Command } from 'commander'
import { readConfig } from '../../config.ts'
import { urlOf } from '../../connection.ts'
import type { Context } from '../../context.ts'
import { UsageError } from '../../exit-code.ts'
import { collectFile } from '../../platform/agents/agent-files.ts'
import { requirePythonFor } from '../../platform/agents/python.ts'
import { openConsole } from '../../platform/console-page.ts'
import { startPlatform } from '../../platform/platform.ts'
import { createPlatformLog } from '../../platform/platform-log.ts'
import { requireFreePort } from '../../platform/port-holder.ts'

const defaultInspectPort = 9229

type StartOptions = { watch?: boolean; json?: boolean; inspect?: string | true }

export function addStartCommands(program: Command, context: Context): void {
  add('start', 'start engines, API and a worker with the example agents, or with those that these files export').option(
    '--watch',
    'restart what a change of the sources touches',
  )
  add('dev', 'the same, restarting what a change touches').option(
    '--inspect [port]',
    `let a debugger attach to the agents' process (default: ${defaultInspectPort})`,
  )

  function add(name: 'start' | 'dev', description: string): Command {
    return program
      .command(name)
      .description(description)
      .argument('[files...]', 'files with agents', collectFile)
      .option('--json', 'write every line as JSON')
      .action((files: string[], options: StartOptions) => run(context, { isWatching: name === 'dev', files, options }))
  }
}

type StartCall = { isWatching: boolean; files: string[]; options: StartOptions }

async function run(context: Context, { files, options, ...call }: StartCall): Promise<void> {
  const { environment } = context
  const isJson = options.json === true
  const isWatching = call.isWatching || options.watch === true
  const { inspectPort, agentFiles } = readInspect(options.inspect, files)
  const log = createPlatformLog(context.out, isJson)
  const config = readConfig(environment)
  await requirePythonFor(agentFiles)
  await requireFreePort(config.host, config.port)
  if (inspectPort !== null) await requireFreePort('127.0.0.1', inspectPort)
  const platform = await startPlatform({ ...config, ...log, environment, agentFiles, isWatching, inspectPort })
  const opening = openConsole({ apiUrl: platform.url, isWatching, write: log.write })
  const stopped = new Promise<void>((resolve, reject) => {
    context.onStop(() => {
      log.write('stopping …')
      stop().then(resolve, reject)
    })
  })
  try {
    const agent = await Promise.race([platform.ready, platform.failed])
    const page = await opening
    if (agent) log.write(isJson ? 'Rivulet is ready' : welcome(platform.url, page.url, agentFiles.length > 0 ? agent : null))
    if (agent && inspectPort !== null) log.write(`Attach a debugger to 127.0.0.1:${inspectPort}, for example at chrome://inspect.`)
    await Promise.race([stopped, platform.failed])
  } catch (error) {
    await stop()
    throw error
  }

  async function stop(): Promise<void> {
    void opening.then(page => page.close())
    await platform.stop()
  }
}

/** Commander takes the word after `--inspect` as its value, also if it is a file. */
function readInspect(inspect: StartOptions['inspect'], files: string[]): { inspectPort: number | null; agentFiles: string[] } {
  if (inspect === undefined) return { inspectPort: null, agentFiles: files }
  if (inspect === true) return { inspectPort: defaultInspectPort, agentFiles: files }
  if (existsSync(inspect)) return { inspectPort: defaultInspectPort, agentFiles: [inspect, ...files] }
  const inspectPort = Number(inspect)
  const isPort = Number.isInteger(inspectPort) && inspectPort >= 1 && inspectPort <= 65_535
  if (!isPort) throw new UsageError(`After --inspect, ${inspect} is neither a port from 1 to 65535 nor a file`)
  return { inspectPort, agentFiles: files }
}

/** @param own an agent of the user's files; null if the example agents run */
function welcome(url: string, pageUrl: string, own: string | null): string {
  const agent = own ?? 'echo'
  const hint = own === null ? '`npx rivulet init <folder>` creates a project with an agent of your own. ' : ''
  // What a command in another terminal finds by itself.
  const elsewhere = urlOf({}, {}) === url ? '' : ` --url ${url}`
  return `
Rivulet is ready. Open ${pageUrl} to see your agents work (the API: ${url}/docs), or in another terminal, in this folder:

  npx rivulet run ${agent} "hello, world"${elsewhere}

  curl -N ${url}/v1/tasks -H 'content-type: application/json' -H 'accept: text/event-stream' -d '{"agent":"${agent}","input":"hello, world"}'

${hint}Ctrl-C stops everything.`
}
