/** The entry of what `rivulet build` makes: a worker with the agents of modules that are part of its bundle. */
import { agentsIn } from './agent-file.ts'
import { runWorker } from './run-worker.ts'

/** What each file exports, by the file's name. */
type Modules = Record<string, Record<string, unknown>>

export async function runBuiltWorker(environment: NodeJS.ProcessEnv, modules: Modules): Promise<void> {
  await runWorker(environment, async () => Object.entries(modules).flatMap(([file, module]) => agentsIn(module, file)))
}
