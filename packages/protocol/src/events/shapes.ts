/**
 * What a reader checks of a JSON value from the API before it relies on it: each field has the JSON type that the contract gives it.
 *
 * The server validates with the schemas. A client checks only this, because the validation library would be most of a browser's bundle. A test compares
 * the tables with the schemas.
 */
import type { Content } from '../entities/content.ts'
import { isObject } from '../values/merge-patch.ts'
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
  | 'file'
  | 'token'
  | 'key'
  | 'caller'
  | 'attempt'
  | 'step'
  | 'feedEntry'
  | 'webhook'
  | 'limits'
  | 'schedule'
  | 'wait'
  | 'state'
  | 'report'
export type Shape = Readonly<Record<string, Kind>>

/** Fields as `name`, which is a string, or `name:kind`. A browser gets these tables, so they are short. */
function fields(...lists: string[]): Shape {
  const pairs = lists.flatMap(list => list.split(' ')).map(field => field.split(':'))
  return Object.fromEntries(pairs.map(([name, kind = 'string']) => [name, kind as Kind]))
}

export const contentShapes: Record<Content['type'], Shape> = {
  text: fields('text format?'),
  reasoning: fields('summary:string[] content:string[]'),
  data: fields('data:json raw? file? size?:number'),
  tool_request: fields('callId name arguments:json raw?'),
  tool_response: fields('callId name content:json isError:boolean file? size?:number'),
  media: fields('mimeType data? url? file? name? size?:number'),
}

export const deltaShapes: Record<Delta['type'], Shape> = {
  text: fields('text'),
  reasoning_summary: fields('index:number text'),
  reasoning_content: fields('index:number text'),
  data_json: fields('text'),
  data: fields('value:json'),
  tool_request: fields('text'),
  tool_response: fields('text'),
  media: fields('bytes'),
  metadata: fields('metadata:object'),
}

export const entityShapes: Record<Entity, Shape> = {
  task: fields(
    'id agent name? status params:json metadata:object omitted?:string[] parent? concurrencyKey? budget?:object createdAt updatedAt',
  ),
  summary: fields(
    'id agent name? status metadata:object title? turns:number ranMs:number runningSince? dueAt? tokens:number cost?:number error?:object createdAt',
    'updatedAt',
  ),
  turn: fields(
    'id task number:number status attempt:number input?:content inputs?:content[] params?:json omitted?:string[] waits?:wait[] stopReason? usage?:object',
    'usageTotal?:object cost?:number error?:object queuedAt startedAt? finishedAt? dueAt? worker? traceId? joinedTo?:number joinIndex?:number',
  ),
  message: fields(
    'task index:number turn:number attempt:number author content:content metadata:object status stopReason? usage?:object response?:object error?:object',
    'createdAt finishedAt?',
  ),
  agent: fields(
    'name description workers:number queued:number running:number params?:object maxAttempts?:number timeoutMs?:number pin?:boolean paused?:boolean',
    'skills?:object[] inputModes?:string[] accepts?:object',
  ),
  file: fields('id name? mimeType size:number sha256 createdAt'),
  token: fields('token can:string[] expiresAt'),
  feedEntry: fields('seq type at task agent turn?:number attempt?:number status? error?:object'),
  webhook: fields('id url events:string[] agent? status createdAt oldSecretUntil?'),
  schedule: fields('id agent cron timezone input?:content params?:json name? overlap missed status createdAt nextAt?'),
  limits: fields('agent concurrency?:number perKey?:number perMinute?:number weights?:object'),
  key: fields(
    'id tenant name scopes:string[] createdAt expiresAt? revokedAt? lastUsedAt? replacedBy? allTenants?:boolean agents?:string[]',
  ),
  wait: fields(
    'id task turn:number agent name kind title detail? schema?:object callId? tool? arguments?:json argumentsSchema?:object actions:string[] assignee?',
    'metadata:object status createdAt expiresAt child? index?:number answer?:object',
  ),
  state: fields('version:number value:json'),
  attempt: fields('attempt:number status worker? startedAt? finishedAt? error?:object usage?:object messages?:message[] omitted?:string[]'),
  step: fields('turn:number name startedAt? finishedAt'),
  caller: fields('tenant scopes:string[] agents?:string[] key? expiresAt?'),
  // What operators read: a browser gets no table of it, and no program decides by it.
  report: {},
}

const common = 'task turn:number attempt:number at:number'

export const eventShapes: Record<Event['type'], Shape> = {
  'turn.queued': fields(common, 'input?:content inputs?:content[] omitted?:string[]'),
  'turn.started': fields(common, 'firstIndex:number input?:message inputs?:message[] state?:state'),
  'message.started': fields(common, 'index:number author content:content metadata?:object'),
  'message.delta': fields(common, 'index:number delta:delta offset:number'),
  'message.replaced': fields(common, 'index:number content:content metadata?:object'),
  'message.finished': fields(common, 'index:number status stopReason? response?:object usage?:object error?:object'),
  'turn.discarded': fields(common, 'from:number'),
  'turn.joined': fields(common, 'into:number index:number'),
  'turn.waiting': fields(common, 'wait:wait more?:boolean'),
  'turn.resumed': fields(common, 'wait status answer?:object'),
  'state.changed': fields(common, 'version:number value?:json patch?:object'),
  'child.started': fields(common, 'child name callId?'),
  'child.finished': fields(common, 'child status'),
  'turn.finished': fields(common, 'status stopReason usageTotal?:object cost?:number usage?:object error?:object'),
  custom: fields(common, 'name data:json index?:number'),
}

export const wireEventShapes: Record<WireEvent['type'], Shape> = {
  snapshot: fields('reason task:task turns:turn[] messages:message[] messagesFrom:number state?:state'),
  caught_up: fields('task'),
  end: fields('task status'),
  deleted: fields('task'),
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
