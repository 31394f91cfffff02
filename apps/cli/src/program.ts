/** `rivulet` and its commands. A wrong command line is a CommanderError; every other failure is another error. */
import { Command } from 'commander'
import { addAgentsCommand } from './commands/agents.ts'
import { addAuditCommand } from './commands/audit.ts'
import { addKeysCommands } from './commands/keys.ts'
import { addLimitsCommands } from './commands/limits.ts'
import { addBuildCommand } from './commands/platform/build.ts'
import { addConformCommand } from './commands/platform/conform.ts'
import { addDoctorCommand } from './commands/platform/doctor.ts'
import { addInitCommand } from './commands/platform/init.ts'
import { addMigrateCommand } from './commands/platform/migrate.ts'
import { addStartCommands } from './commands/platform/start.ts'
import { addWorkerCommand } from './commands/platform/worker.ts'
import { addSchedulesCommands } from './commands/schedules.ts'
import { addStoreCommands } from './commands/store.ts'
import { addCancelCommand } from './commands/tasks/cancel.ts'
import { addChangeCommand } from './commands/tasks/change.ts'
import { addChatCommand } from './commands/tasks/chat.ts'
import { addExportCommand } from './commands/tasks/export.ts'
import { addForkCommand } from './commands/tasks/fork.ts'
import { addRetryCommand } from './commands/tasks/retry.ts'
import { addRunCommand } from './commands/tasks/run.ts'
import { addSendCommand } from './commands/tasks/send.ts'
import { addShowCommand } from './commands/tasks/show.ts'
import { addStateCommand } from './commands/tasks/state.ts'
import { addTailCommand } from './commands/tasks/tail.ts'
import { addTasksCommand } from './commands/tasks/tasks.ts'
import { addWaitsCommands } from './commands/tasks/waits.ts'
import { addWatchCommand } from './commands/tasks/watch.ts'
import { addUsageCommand } from './commands/usage.ts'
import { addWebhooksCommands } from './commands/webhooks.ts'
import { addWorkersCommands } from './commands/workers.ts'
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
  addChatCommand,
  addTailCommand,
  addWatchCommand,
  addTasksCommand,
  addShowCommand,
  addForkCommand,
  addRetryCommand,
  addSendCommand,
  addChangeCommand,
  addStateCommand,
  addExportCommand,
  addCancelCommand,
  addWaitsCommands,
  addAgentsCommand,
  addWorkersCommands,
  addConformCommand,
  addDoctorCommand,
  addInitCommand,
  addMigrateCommand,
  addKeysCommands,
  addAuditCommand,
  addLimitsCommands,
  addStoreCommands,
  addUsageCommand,
  addSchedulesCommands,
  addWebhooksCommands,
]
