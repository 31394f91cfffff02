/** `rivulet worker <file>`: runs the agents of a file as a worker of a running platform, and restarts it when the file changes. */
import type { Command } from 'commander'
import { readConfig } from '../../config.ts'
import { addConnectionOptions, connectionOf } from '../../connection.ts'
import type { Context } from '../../context.ts'
import { collectFile } from '../../platform/agents/agent-files.ts'
import { superviseWorkers } from '../../platform/agents/agent-workers.ts'
import { isPython, requirePythonFor } from '../../platform/agents/python.ts'
import { createPlatformLog } from '../../platform/platform-log.ts'
import { environmentFor, requireValidEnvironment } from '../../platform/program-environment.ts'
import { findRunning } from '../../platform/running-note.ts'
import { foldersOf, watchSources } from '../../platform/source-watch.ts'
import { reloadDrainMs, stopMsFor } from '../../platform/stop-time.ts'
import { waitsForChange } from '../../platform/supervised-process.ts'

type WorkerOptions = { url?: string; key?: string; json?: boolean }

export function addWorkerCommand(program: Command, context: Context): void {
  const command = program
    .command('worker')
    .description('run the agents that these files export, restarting them when they change')
    .argument('<files...>', 'files with agents', collectFile)
    .option('--json', 'write every line as JSON')
  addConnectionOptions(command).action((files: string[], options: WorkerOptions) => run(context, files, options))
}

async function run(context: Context, files: string[], options: WorkerOptions): Promise<void> {
  const { environment } = context
  const log = createPlatformLog(context.out, options.json === true)
  let isWanted = true
  const own = environmentFor('worker', {
    ...environment,
    ...whereToWork(environment, files, options),
    WORKER_DRAIN_MS: reloadDrainMs(environment),
  })
  requireValidEnvironment('worker', own)
  await requirePythonFor(files)
  const worker = superviseWorkers({
    files,
    environment: own,
    stopMs: stopMsFor(own),
    write: log.write,
    hear: line => log.hear('worker', line),
    onUnusable: () => log.write(waitsForChange),
    isWanted: () => isWanted,
  })
  const unwatch = watchSources(foldersOf(files), () => {
    log.write('worker changed; restarting')
    worker.restart()
  })
  await new Promise<void>((resolve, reject) => {
    context.onStop(() => {
      isWanted = false
      unwatch()
      worker.stop().then(resolve, reject)
    })
  })
}

/** What was said comes first, then the platform that runs on the data folder of this place. */
function whereToWork(environment: Context['environment'], files: string[], options: WorkerOptions): Record<string, string | undefined> {
  const running = findRunning(readConfig(environment).dataDir)
  const redisUrl = environment.REDIS_URL || running?.redisUrl
  const said = options.url ?? (environment.RIVULET_URL || running?.url)
  // Agents in Python need the API alone.
  const isWithoutRedis = environment.RIVULET_TRANSPORT === 'http' || files.every(isPython)
  if (isWithoutRedis ? !said : !redisUrl)
    throw new Error('No platform runs in this folder: start one with npm start, or set REDIS_URL and RIVULET_URL')
  const { url } = connectionOf(said ? { url: said } : {}, environment)
  // The key in the note is for the platform of the note, and is sent to no other.
  const noted = running?.url === url ? running : null
  const key = options.key ?? (environment.RIVULET_WORKER_KEY || noted?.workerKey)
  if (!key && !noted && environment.RIVULET_KEY) throw new Error(noRootKey)
  return { REDIS_URL: redisUrl, RIVULET_URL: said ?? url, RIVULET_WORKER_KEY: key }
}

const noRootKey =
  'A worker does not get RIVULET_KEY, because its agents could read it: set RIVULET_WORKER_KEY, or pass a key with the scope worker as --key'
