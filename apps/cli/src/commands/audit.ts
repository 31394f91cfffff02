/** `rivulet audit`: who changed what, as lines of JSON, newest first. */
import { type AuditAction, auditActions } from '@rivulet/contract/scopes'
import { type Command, Option } from 'commander'
import { addConnectionOptions, connect, connectionOf } from '../connection.ts'
import type { Context } from '../context.ts'
import { toJsonLine } from '../terminal/json-line.ts'

type AuditOptions = { url?: string; key?: string; action?: AuditAction; target?: string; by?: string; tenant?: string; until?: string }

export function addAuditCommand(program: Command, context: Context): void {
  const command = program
    .command('audit')
    .description('print the audit log as lines of JSON, newest first')
    .addOption(new Option('--action <action>', 'only this kind of change').choices(auditActions))
    .option('--target <id>', 'only changes of this key, task, file, schedule, webhook or agent')
    .option('--by <key>', 'only changes by the key with this id')
    .option('--tenant <tenant>', 'only this tenant; for the root key')
    .option('--until <id>', 'end before the entry with this id, which you have already')
  addConnectionOptions(command).action((options: AuditOptions) => printAudit(context, options))
}

async function printAudit({ environment, out }: Context, { action, target, by, tenant, until, ...options }: AuditOptions): Promise<void> {
  const client = connect(connectionOf(options, environment))
  for (let cursor: string | null | undefined; cursor !== null; ) {
    const page: Awaited<ReturnType<typeof client.audit>> = await client.audit({ action, target, key: by, tenant, cursor })
    for (const entry of page.data) {
      if (entry.id === until) return
      out.write(toJsonLine(entry))
    }
    cursor = page.nextCursor
  }
}
