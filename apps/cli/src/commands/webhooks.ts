/** `rivulet webhooks`: addresses that the server calls when tasks and turns change, and what became of each call. */
import type { Delivery, Webhook, WebhookCalls } from '@rivulet/client'
import { type FeedEntryType, feedEntryTypeSchema } from '@rivulet/contract/feed'
import { type Command, Option } from 'commander'
import { addConnectionOptions, connect, connectionOf } from '../connection.ts'
import type { Context } from '../context.ts'
import { everyPage } from '../every-page.ts'
import { formatAge } from '../terminal/duration.ts'
import { toJsonLine } from '../terminal/json-line.ts'
import { formatTable } from '../terminal/table.ts'

type Common = { url?: string; key?: string; json?: boolean }
type CreateOptions = Common & { event: FeedEntryType[]; agent?: string; secret?: string }
type DeliveriesOptions = Common & { status?: Delivery['status'] }

const statuses = ['pending', 'delivered', 'failed'] satisfies Delivery['status'][]

export function addWebhooksCommands(program: Command, context: Context): void {
  const webhooks = program.command('webhooks').description('call an address when tasks and turns change')
  const add = (command: Command) => addConnectionOptions(command.option('--json', 'print it as JSON'))
  const byId = (name: string, description: string) => add(webhooks.command(name).description(description).argument('<id>', 'its id'))
  add(webhooks.command('list', { isDefault: true }).description('list the webhooks')).action((options: Common) => list(context, options))
  const types = new Option('--event <type...>', 'the changes it is called for').choices(feedEntryTypeSchema.options)
  add(
    webhooks
      .command('create')
      .description('create a webhook; its secret is printed once')
      .argument('<address>', 'the address to call')
      .addOption(types.default(['turn.finished']))
      .option('--agent <agent>', 'only tasks of this agent')
      .option('--secret <secret>', 'a secret of your own, such as whsec_…'),
  ).action((address: string, options: CreateOptions) => create(context, address, options))
  byId('pause', 'call it no more until it is resumed').action((id: string, options: Common) => setStatus(context, id, 'disabled', options))
  byId('resume', 'call it again').action((id: string, options: Common) => setStatus(context, id, 'active', options))
  byId('rotate', 'sign with a new secret; the old one is valid for a day').action((id: string, options: Common) =>
    rotate(context, id, options),
  )
  byId('deliveries', 'list its calls, newest first')
    .addOption(new Option('--status <status>', 'in this state').choices(statuses))
    .action((id: string, options: DeliveriesOptions) => deliveries(context, id, options))
  byId('retry', 'make a call again, now')
    .argument('<delivery>', 'the id of the call')
    .action(async (id: string, delivery: string, options: Common) => {
      const sent = await callsOf(context, options).retry(id, delivery)
      context.out.write(options.json ? toJsonLine({ delivery: sent }) : `${sent.id} is ${sent.status}\n`)
    })
  byId('delete', 'delete a webhook').action(async (id: string, options: Common) => {
    await callsOf(context, options).remove(id)
    context.out.write(options.json ? toJsonLine({ deleted: id }) : `${id} is deleted\n`)
  })
}

function callsOf({ environment }: Context, options: Common): WebhookCalls {
  return connect(connectionOf(options, environment)).webhooks
}

async function list(context: Context, options: Common): Promise<void> {
  const calls = callsOf(context, options)
  const found = await everyPage(cursor => calls.list({ cursor }))
  if (options.json) return context.out.write(toJsonLine({ data: found }))
  context.out.write(found.length > 0 ? formatTable(['id', 'status', 'agent', 'events', 'address'], found.map(rowOf)) : 'no webhooks\n')
}

function rowOf({ id, status, agent, events, url }: Webhook): string[] {
  return [id, status, agent ?? 'all', events.join(' '), url]
}

async function create(context: Context, address: string, options: CreateOptions): Promise<void> {
  const { event: events, agent, secret: own } = options
  const created = await callsOf(context, options).create({ url: address, events, ...(agent && { agent }), ...(own && { secret: own }) })
  showSecret(context, created, options)
}

async function rotate(context: Context, id: string, options: Common): Promise<void> {
  const { webhook, secret } = await callsOf(context, options).change(id, { secret: true })
  if (secret === undefined) throw new Error('The API returned no new secret')
  showSecret(context, { webhook, secret }, options)
}

/** The secret is alone on stdout, so that a script can read it into a variable. */
function showSecret({ out, err }: Context, { webhook, secret }: { webhook: Webhook; secret: string }, { json }: Common): void {
  out.write(json ? toJsonLine({ webhook, secret }) : `${secret}\n`)
  if (!json) err.write(`This secret is shown once. The id of the webhook is ${webhook.id}.\n`)
}

async function setStatus(context: Context, id: string, status: Webhook['status'], options: Common): Promise<void> {
  const { webhook } = await callsOf(context, options).change(id, { status })
  context.out.write(options.json ? toJsonLine({ webhook }) : `${id} is ${webhook.status}\n`)
}

async function deliveries(context: Context, id: string, options: DeliveriesOptions): Promise<void> {
  const page = await callsOf(context, options).deliveries(id, { limit: 100, ...(options.status && { status: options.status }) })
  if (options.json) return context.out.write(toJsonLine(page))
  const now = Date.now()
  const rows = page.data.map(({ id: delivery, type, task, status, attempts, lastStatus, lastError, createdAt }) => [
    ...[delivery, type, task, status, String(attempts), String(lastStatus ?? lastError ?? ''), formatAge(createdAt, now)],
  ])
  const columns = ['id', 'type', 'task', 'status', 'attempts', 'last', 'created']
  context.out.write(rows.length > 0 ? formatTable(columns, rows) : 'no deliveries\n')
}
