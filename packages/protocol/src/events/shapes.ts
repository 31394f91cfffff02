/**
 * What a reader checks of a JSON value from the API before it relies on it: each field has the JSON type that the contract gives it.
 *
 * The server validates with the schemas. A client checks only this, because the validation library would be most of a browser's bundle. A test compares
 * the tables with the schemas.
 */
import type { Content } from '../entities/content.ts'
import type { Delta } from './delta.ts'
import type { Event, WireEvent } from './event.ts'

/** A JSON type, an entity, a union by `type`, or a list (`…[]`). `json` is any value. A field whose name ends in `?` may be absent. */
type Kind = Single | `${Single}[]`
type Single = 'string' | 'number' | 'boolean' | 'object' | 'json' | 'content' | 'delta' | Entity
export type Entity =
  | 'task'
  | 'summary'
  | 'turn'
  | 'message'
  | 'agent'
  | 'activity'
  | 'file'
  | 'token'
  | 'key'
  | 'caller'
  | 'attempt'
  | 'worker'
  | 'errorGroup'
  | 'feedEntry'
  | 'webhook'
  | 'delivery'
  | 'limits'
  | 'schedule'
  | 'scheduleRun'
  | 'usage'
  | 'wait'
  | 'state'
export type Shape = Readonly<Record<string, Kind>>

export const contentShapes: Record<Content['type'], Shape> = {
  text: { text: 'string', 'format?': 'string' },
  reasoning: { summary: 'string[]', content: 'string[]' },
  data: { data: 'json', 'raw?': 'string', 'file?': 'string', 'size?': 'number' },
  tool_request: { callId: 'string', name: 'string', arguments: 'json', 'raw?': 'string' },
  tool_response: { callId: 'string', name: 'string', content: 'json', isError: 'boolean', 'file?': 'string', 'size?': 'number' },
  media: { mimeType: 'string', 'data?': 'string', 'url?': 'string', 'file?': 'string', 'name?': 'string', 'size?': 'number' },
}

export const deltaShapes: Record<Delta['type'], Shape> = {
  text: { text: 'string' },
  reasoning_summary: { index: 'number', text: 'string' },
  reasoning_content: { index: 'number', text: 'string' },
  data_json: { text: 'string' },
  data: { value: 'json' },
  tool_request: { text: 'string' },
  tool_response: { text: 'string' },
  media: { bytes: 'string' },
  metadata: { metadata: 'object' },
}

const times = { queuedAt: 'string', 'startedAt?': 'string', 'finishedAt?': 'string' } as const

export const entityShapes: Record<Entity, Shape> = {
  task: {
    ...{ id: 'string', agent: 'string', 'name?': 'string', status: 'string', params: 'json', metadata: 'object', 'omitted?': 'string[]' },
    ...{ 'parent?': 'string', 'concurrencyKey?': 'string', 'budget?': 'object', createdAt: 'string', updatedAt: 'string' },
  },
  summary: {
    ...{ id: 'string', agent: 'string', 'name?': 'string', status: 'string', metadata: 'object', 'title?': 'string', turns: 'number' },
    ...{ ranMs: 'number', 'runningSince?': 'string', 'dueAt?': 'string', tokens: 'number', 'cost?': 'number', 'error?': 'object' },
    ...{ createdAt: 'string', updatedAt: 'string' },
  },
  turn: {
    ...{ id: 'string', task: 'string', number: 'number', status: 'string', attempt: 'number', 'input?': 'content', 'inputs?': 'content[]' },
    ...{
      'params?': 'json',
      'omitted?': 'string[]',
      'waits?': 'wait[]',
      'stopReason?': 'string',
      'usage?': 'object',
      'usageTotal?': 'object',
      'cost?': 'number',
      'error?': 'object',
      ...times,
    },
    ...{ 'dueAt?': 'string', 'worker?': 'string', 'traceId?': 'string', 'joinedTo?': 'number', 'joinIndex?': 'number' },
  },
  message: {
    ...{ task: 'string', index: 'number', turn: 'number', attempt: 'number', author: 'string', content: 'content', metadata: 'object' },
    ...{ status: 'string', 'stopReason?': 'string', 'usage?': 'object', 'response?': 'object', 'error?': 'object' },
    ...{ createdAt: 'string', 'finishedAt?': 'string' },
  },
  agent: {
    ...{ name: 'string', description: 'string', workers: 'number', queued: 'number', running: 'number' },
    ...{ 'params?': 'object', 'maxAttempts?': 'number', 'timeoutMs?': 'number', 'paused?': 'boolean' },
  },
  activity: { from: 'string', to: 'string', bucketMs: 'number', data: 'object[]', queued: 'number[]' },
  file: { id: 'string', 'name?': 'string', mimeType: 'string', size: 'number', sha256: 'string', createdAt: 'string' },
  token: { token: 'string', can: 'string[]', expiresAt: 'string' },
  feedEntry: {
    ...{ seq: 'string', type: 'string', at: 'string', task: 'string', agent: 'string' },
    ...{ 'turn?': 'number', 'attempt?': 'number', 'status?': 'string', 'error?': 'object' },
  },
  webhook: {
    ...{ id: 'string', url: 'string', events: 'string[]', 'agent?': 'string', status: 'string', createdAt: 'string' },
    'oldSecretUntil?': 'string',
  },
  delivery: {
    ...{ id: 'string', type: 'string', task: 'string', status: 'string', attempts: 'number', 'lastStatus?': 'number' },
    ...{ 'lastError?': 'string', createdAt: 'string', 'nextAt?': 'string', 'deliveredAt?': 'string' },
  },
  schedule: {
    ...{ id: 'string', agent: 'string', cron: 'string', timezone: 'string', 'input?': 'content', 'params?': 'json' },
    ...{ 'name?': 'string', overlap: 'string', missed: 'string', status: 'string', createdAt: 'string', 'nextAt?': 'string' },
  },
  limits: {
    ...{ agent: 'string', 'concurrency?': 'number', 'perKey?': 'number', 'perMinute?': 'number', 'weights?': 'object' },
  },
  scheduleRun: {
    ...{ at: 'string', 'task?': 'string', 'turn?': 'number', 'skipReason?': 'string', 'error?': 'object', createdAt: 'string' },
  },
  key: {
    ...{ id: 'string', tenant: 'string', name: 'string', scopes: 'string[]', createdAt: 'string', 'expiresAt?': 'string' },
    ...{ 'revokedAt?': 'string', 'lastUsedAt?': 'string', 'replacedBy?': 'string', 'allTenants?': 'boolean', 'agents?': 'string[]' },
  },
  wait: {
    ...{ id: 'string', task: 'string', turn: 'number', agent: 'string', name: 'string', kind: 'string', title: 'string' },
    ...{ 'detail?': 'string', 'schema?': 'object', 'callId?': 'string', 'tool?': 'string', 'arguments?': 'json', actions: 'string[]' },
    ...{ 'assignee?': 'string', metadata: 'object', status: 'string', createdAt: 'string', expiresAt: 'string', 'child?': 'string' },
    'answer?': 'object',
  },
  state: { version: 'number', value: 'json' },
  attempt: {
    ...{ attempt: 'number', status: 'string', 'worker?': 'string', 'startedAt?': 'string', 'finishedAt?': 'string', 'error?': 'object' },
    ...{ 'usage?': 'object', 'messages?': 'message[]', 'omitted?': 'string[]' },
  },
  worker: {
    ...{ id: 'string', 'version?': 'string', 'slots?': 'number', agents: 'string[]', seenAt: 'string', silentMs: 'number' },
    ...{ isLive: 'boolean', turns: 'object[]' },
  },
  errorGroup: {
    ...{ fingerprint: 'string', agent: 'string', code: 'string', message: 'string', count: 'number', tasks: 'number' },
    ...{ firstAt: 'string', lastAt: 'string', lastTask: 'string' },
  },
  usage: { by: 'string', from: 'string', to: 'string', data: 'object[]', total: 'object' },
  caller: { tenant: 'string', scopes: 'string[]', 'key?': 'string', 'expiresAt?': 'string' },
}

const common = { task: 'string', turn: 'number', attempt: 'number', at: 'number' } as const
const ending = { 'usage?': 'object', 'error?': 'object' } as const

export const eventShapes: Record<Event['type'], Shape> = {
  'turn.queued': { ...common, 'input?': 'content', 'inputs?': 'content[]', 'omitted?': 'string[]' },
  'turn.started': { ...common, firstIndex: 'number', 'input?': 'message', 'inputs?': 'message[]', 'state?': 'state' },
  'message.started': { ...common, index: 'number', author: 'string', content: 'content', 'metadata?': 'object' },
  'message.delta': { ...common, index: 'number', delta: 'delta', offset: 'number' },
  'message.replaced': { ...common, index: 'number', content: 'content', 'metadata?': 'object' },
  'message.finished': { ...common, index: 'number', status: 'string', 'stopReason?': 'string', 'response?': 'object', ...ending },
  'turn.discarded': { ...common, from: 'number' },
  'turn.joined': { ...common, into: 'number', index: 'number' },
  'turn.waiting': { ...common, wait: 'wait', 'more?': 'boolean' },
  'turn.resumed': { ...common, wait: 'string', status: 'string', 'answer?': 'object' },
  'state.changed': { ...common, version: 'number', 'value?': 'json', 'patch?': 'object' },
  'child.started': { ...common, child: 'string', name: 'string', 'callId?': 'string' },
  'child.finished': { ...common, child: 'string', status: 'string' },
  'turn.finished': { ...common, status: 'string', stopReason: 'string', 'usageTotal?': 'object', 'cost?': 'number', ...ending },
  custom: { ...common, name: 'string', data: 'json', 'index?': 'number' },
}

export const wireEventShapes: Record<WireEvent['type'], Shape> = {
  snapshot: { reason: 'string', task: 'task', turns: 'turn[]', messages: 'message[]', messagesFrom: 'number', 'state?': 'state' },
  caught_up: { task: 'string' },
  end: { task: 'string', status: 'string' },
  deleted: { task: 'string' },
}

/** The event; null for a type that this version does not know, which readers pass over; `malformed` for a known type with a wrong field. */
export function readEvent(value: unknown): Event | WireEvent | null | 'malformed' {
  if (!isObject(value) || typeof value.type !== 'string') return 'malformed'
  const shape = own(eventShapes, value.type) ?? own(wireEventShapes, value.type)
  if (!shape) return null
  return hasShape(value, shape) ? (value as Event | WireEvent) : 'malformed'
}

export function isEntity(value: unknown, entity: Entity): boolean {
  return isObject(value) && hasShape(value, entityShapes[entity])
}

function hasShape(value: Record<string, unknown>, shape: Shape): boolean {
  for (const field in shape) {
    const isOptional = field.endsWith('?')
    const found = value[isOptional ? field.slice(0, -1) : field]
    if (found === undefined ? !isOptional : !isOfKind(found, shape[field] as Kind)) return false
  }
  return true
}

function isOfKind(value: unknown, kind: Kind): boolean {
  if (kind.endsWith('[]')) return Array.isArray(value) && value.every(item => isOfKind(item, kind.slice(0, -2) as Kind))
  if (kind === 'json') return true
  if (kind === 'object') return isObject(value)
  if (kind === 'content' || kind === 'delta') return isOfType(value, kind === 'content' ? contentShapes : deltaShapes)
  if (kind in entityShapes) return isEntity(value, kind as Entity)
  return typeof value === kind
}

function isOfType(value: unknown, shapes: Record<string, Shape>): boolean {
  const shape = isObject(value) && typeof value.type === 'string' ? own(shapes, value.type) : undefined
  return shape !== undefined && hasShape(value as Record<string, unknown>, shape)
}

function own<T>(table: Record<string, T>, name: string): T | undefined {
  return Object.hasOwn(table, name) ? table[name] : undefined
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
