/** `rivulet` and its commands. A wrong command line is a CommanderError; every other failure is another error. */
import { Command } from 'commander'
import { addAgentsCommand } from './commands/agents.ts'
import { addBuildCommand } from './commands/build.ts'
import { addCancelCommand } from './commands/cancel.ts'
import { addChangeCommand } from './commands/change.ts'
import { addDoctorCommand } from './commands/doctor.ts'
import { addExportCommand } from './commands/export.ts'
import { addForkCommand } from './commands/fork.ts'
import { addInitCommand } from './commands/init.ts'
import { addKeysCommands } from './commands/keys.ts'
import { addMigrateCommand } from './commands/migrate.ts'
import { addRetryCommand } from './commands/retry.ts'
import { addRunCommand } from './commands/run.ts'
import { addShowCommand } from './commands/show.ts'
import { addStartCommands } from './commands/start.ts'
import { addTailCommand } from './commands/tail.ts'
import { addTasksCommand } from './commands/tasks.ts'
import { addWaitsCommands } from './commands/waits.ts'
import { addWatchCommand } from './commands/watch.ts'
import { addWorkerCommand } from './commands/worker.ts'
import type { Context } from './context.ts'

export function createProgram(context: Context, version: string): Command {
  const program = new Command('rivulet')
    .description('Runs AI agents as asynchronous workers and streams their output.')
    .version(version)
    .exitOverride()
    .configureOutput({ writeOut: text => context.out.write(text), writeErr: text => context.err.write(text) })
    .showSuggestionAfterError()
    .addHelpText('after', '\nExit codes: 0 completed, 1 failed, 2 usage, 130 canceled.')
  for (const add of commands) add(program, context)
  return program
}

const commands = [
  addStartCommands,
  addWorkerCommand,
  addBuildCommand,
  addRunCommand,
  addTailCommand,
  addWatchCommand,
  addTasksCommand,
  addShowCommand,
  addForkCommand,
  addRetryCommand,
  addChangeCommand,
  addExportCommand,
  addCancelCommand,
  addWaitsCommands,
  addAgentsCommand,
  addDoctorCommand,
  addInitCommand,
  addMigrateCommand,
  addKeysCommands,
]
