/** The calls of docs/http-reference.md, from the contract. */
import { entities } from '@rivulet/contract/entities'
import type { OtherContent, Route } from '@rivulet/contract/route'
import { routes } from '@rivulet/contract/routes'
import { type ErrorCode, type ErrorRow, errorTable } from '@rivulet/protocol'
import { z } from 'zod'
import { code, tableOf } from './marked-block.ts'

/** In the order of the page. Calls of workers are in docs/worker-protocol.md. */
const nouns = {
  tasks: 'Tasks, their turns, messages, events and tokens',
  waits: 'Waits',
  store: 'The store',
  files: 'Files',
  schedules: 'Schedules',
  webhooks: 'Webhooks',
  feed: 'The feed',
  agents: 'Agents and workers',
  limits: 'Limits of agents',
  usage: 'Usage',
  keys: 'Keys, the audit log, the caller',
  openai: '[OpenAI](dialects.md#openai)',
  'ag-ui': '[AG-UI](dialects.md#ag-ui)',
  a2a: '[A2A](dialects.md#a2a)',
  mcp: '[MCP](dialects.md#mcp)',
  operations: 'Health and metrics',
}

const methods = ['POST', 'GET', 'PUT', 'PATCH', 'DELETE']
const named = new Map<unknown, string>(Object.entries(entities).map(([name, schema]) => [schema, name]))

export function callsText(): string {
  const rows = [...routes.values()].filter(({ scope }) => scope !== 'worker').toSorted(byPath)
  const others = rows.filter(({ tag }) => !(tag in nouns))
  if (others.length > 0)
    throw new Error(`scripts/generated/calls.ts has no title for the calls of ${others.map(({ tag }) => tag).join(', ')}`)
  const tables = Object.entries(nouns).map(([tag, title]) => `**${title}**\n\n${callsTable(rows.filter(row => row.tag === tag))}`)
  const [kept, rejected] = (['kept', 'rejected'] as const).map(mode =>
    rows.filter(({ idempotencyKey }) => idempotencyKey === mode).map(row => `- ${code(nameOf(row))}`),
  )
  return [
    ...tables,
    'These calls keep their response under an `Idempotency-Key`:',
    kept?.join('\n'),
    'These reject one, because their response has a secret, which the API never stores:',
    rejected?.join('\n'),
  ].join('\n\n')
}

function callsTable(rows: readonly Route[]): string {
  return tableOf(
    ['call', 'scope', 'token', 'what it does', 'returns', 'errors'],
    rows.map(row => [
      code(nameOf(row)),
      row.scope === null ? '–' : code(row.scope),
      [row.token ?? [], row.tokenAlso ?? []]
        .flat()
        .map(code)
        .join(row.tokenAlso ? ' and ' : ' or ') || '–',
      row.doc,
      [...Object.entries(row.returns).map(([status, body]) => `${status} ${shapeOf(body)}`.trim()), row.note ?? []].flat().join('. '),
      errorsOf(row),
    ]),
  )
}

function byPath(a: Route, b: Route): number {
  return a.path.localeCompare(b.path) || methods.indexOf(a.method) - methods.indexOf(b.method)
}

/** By status. */
function errorsOf({ errors = [] }: Route): string {
  const statusOf = (error: ErrorCode): number => (errorTable[error] as ErrorRow).status ?? 0
  const statuses = new Set(errors.map(statusOf).toSorted((a, b) => a - b))
  return Array.from(
    statuses,
    status =>
      `${status} ${errors
        .filter(error => statusOf(error) === status)
        .map(code)
        .join(', ')}`,
  ).join(', ')
}

function nameOf({ method, path }: Route): string {
  return `${method} ${path.replaceAll('::', ':')}`
}

function shapeOf(body: z.ZodType | OtherContent): string {
  if (!(body instanceof z.ZodType)) return body.description
  const name = named.get(body)
  if (name !== undefined) return name
  if (body instanceof z.ZodOptional || body instanceof z.ZodNullable) return shapeOf(body.unwrap() as z.ZodType)
  if (body instanceof z.ZodArray) return `${shapeOf(body.element as z.ZodType)}[]`.replace(/^\[\]$/, '')
  if (body instanceof z.ZodUnion) return body.options.map(option => shapeOf(option as z.ZodType)).join(' or ')
  if (body instanceof z.ZodLiteral) return code(String(body.value))
  if (body instanceof z.ZodEnum) return body.options.length > 3 ? '' : body.options.map(option => code(String(option))).join(' or ')
  if (body instanceof z.ZodObject)
    return `{ ${Object.entries(body.shape as Record<string, z.ZodType>)
      .map(fieldOf)
      .join(', ')} }`
  return body.description ?? ''
}

/** `task` of the type Task needs no type beside it. */
function fieldOf([name, schema]: [string, z.ZodType]): string {
  const type = schema instanceof z.ZodObject && !named.has(schema) ? '' : shapeOf(schema)
  const isPlain = type.toLowerCase().replace('[]', 's') === name.toLowerCase()
  return `${code(name)}${schema instanceof z.ZodOptional ? '?' : ''}${type === '' || isPlain ? '' : `: ${type}`}`
}
