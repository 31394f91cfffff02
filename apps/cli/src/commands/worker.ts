/** `rivulet worker <file>`: runs the agents that a file exports, beside a platform that runs already, and again with every change of the file. */
import { existsSync } from 'node:fs'
import { type Command, InvalidArgumentError } from 'commander'
import { readConfig } from '../config.ts'
import { addConnectionOptions, connectionOf } from '../connection.ts'
import type { Context } from '../context.ts'
import { createPlatformLog } from '../platform-log.ts'
import { programs } from '../programs.ts'
import { findRunning } from '../running-note.ts'
import { foldersOf, watchSources } from '../source-watch.ts'
import { superviseProcess } from '../supervised-process.ts'

type WorkerOptions = { url?: string; key?: string; json?: boolean }

export function addWorkerCommand(program: Command, context: Context): void {
  const command = program
    .command('worker')
    .description('run the agents that these files export, restarting them when they change')
    .argument('<files...>', 'files with agents', (file: string, earlier: string[] = []) => [...earlier, checkFile(file)])
    .option('--json', 'write every line as JSON')
  addConnectionOptions(command).action((files: string[], options: WorkerOptions) => run(context, files, options))
}

function checkFile(file: string): string {
  if (!existsSync(file)) throw new InvalidArgumentError(`There is no file ${file}`)
  return file
}

async function run(context: Context, files: string[], options: WorkerOptions): Promise<void> {
  const { environment } = context
  const log = createPlatformLog(context.out, options.json === true)
  let isWanted = true
  const worker = superviseProcess({
    name: 'worker',
    entry: programs.worker,
    args: files,
    environment: { ...environment, ...whereToWork(environment, options) },
    write: log.write,
    hear: line => log.hear('worker', line),
    isWanted: () => isWanted,
  })
  const unwatch = watchSources(foldersOf(files), () => {
    log.write('worker changed; restarting')
    void worker.restart()
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
function whereToWork(environment: Context['environment'], options: WorkerOptions): Record<string, string | undefined> {
  const running = findRunning(readConfig(environment).dataDir)
  const redisUrl = environment.REDIS_URL || running?.redisUrl
  if (!redisUrl) throw new Error('No platform runs in this folder: start one with npm start, or set REDIS_URL and RIVULET_URL')
  const url = options.url ?? (environment.RIVULET_URL || running?.url)
  return {
    REDIS_URL: redisUrl,
    RIVULET_URL: connectionOf(url ? { url } : {}, environment).url,
    RIVULET_WORKER_KEY: options.key ?? (environment.RIVULET_WORKER_KEY || environment.RIVULET_KEY),
  }
}
