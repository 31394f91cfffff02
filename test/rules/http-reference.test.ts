/**
 * docs/http-reference.md says what is there, and all of it: calls with their scopes, events and entities with their fields, codes and limits.
 *
 * The calls are compared with the table of `test/flow/tenants.test.ts`, which is compared with the running API, and holds each scope to what it
 * says. What each call takes is compared with the running API by `test/readme/commands.test.ts`.
 */
import {
  activitySchema,
  agentSchema,
  attemptSchema,
  auditActions,
  auditEntrySchema,
  authorSchema,
  callerSchema,
  contentSchema,
  defaultLimits,
  deliverySchema,
  deltaSchema,
  type ErrorRow,
  errorGroupSchema,
  errorTable,
  eventSchema,
  feedEntrySchema,
  fileSchema,
  keySchema,
  type Limits,
  limitNames,
  messageSchema,
  messageStatusSchema,
  scheduleRunSchema,
  scheduleSchema,
  stepSchema,
  stopReasonSchema,
  streamFormatSchema,
  taskSchema,
  taskStatusSchema,
  taskSummarySchema,
  tokenEventSchema,
  turnSchema,
  turnStatusSchema,
  usageReportSchema,
  webhookSchema,
  wireEventSchema,
  workerSchema,
} from '@rivulet/protocol'
import { describe, expect, test } from 'vitest'
import { namesIn, rowsUnder, tablesOf } from './markdown-table.ts'
import { readText } from './repository.ts'

const page = readText('docs/http-reference.md')

describe('calls', () => {
  const known = Array.from(
    readText('test/flow/tenants.test.ts').matchAll(
      /^ {2}'(\w+ \/\S+)': \{ scope: (?:null|'([\w:]+)')(?:, token: '(\w+)')?(?:, (?:orToken|andToken): '(\w+)')?.*?status: (\d+) \},$/gm,
    ),
    ([, call = '', scope = '–', token = '–', or, status = '']) => ({
      ...{ call: call.replace(/\{(\w+)\}/g, ':$1'), scope, token: [token, or].filter(Boolean).join(', '), status },
    }),
  )

  test('are those that the API has, with the scope, the right and the status of each', () => {
    const told = rowsUnder(page, 'call').map(([call, scope, token, replies = '']) => ({
      call: bare(call),
      scope: bare(scope),
      token: bare(token),
      status: /^\d+/.exec(replies)?.[0],
    }))
    expect(told.length).toBeGreaterThan(10)
    expect(sorted(told)).toEqual(sorted(known.filter(({ scope }) => scope !== 'worker')))
  })

  test('of workers are all there, too', () => {
    const own = Array.from(page.matchAll(/`(\/internal\/\w+)`/g), ([, path]) => `POST ${path}`)
    const open = readText('docs/worker-protocol.md').matchAll(/`((?:GET|POST) \/worker\/v1\/[\w/:]+)`/g)
    const told = Array.from(new Set([...own, ...Array.from(open, ([, call = '']) => call)]), call => ({ call }))
    expect(sorted(told)).toEqual(sorted(known.filter(({ scope }) => scope === 'worker').map(({ call }) => ({ call }))))
  })
})

test('each action of the audit log is in its table', () => {
  const told = rowsUnder(readText('docs/security.md'), 'action').flatMap(([actions = '']) => namesIn(actions))
  expect(told.sort()).toEqual([...auditActions].sort())
})

describe('events', () => {
  const common = new Set(['type', 'turn', 'attempt', 'at', 'task'])

  test('in the log have the fields that they have', () => {
    expect(fieldsUnder('event').slice(0, eventSchema.options.length)).toEqual(
      eventSchema.options.map(({ shape }) => [shape.type.value, fieldsOf(shape).filter(name => !common.has(name))]),
    )
  })

  test('on the wire have the fields that they have', () => {
    expect(fieldsUnder('event').slice(eventSchema.options.length)).toEqual(
      [...wireEventSchema.options, tokenEventSchema].map(({ shape }) => [
        shape.type.value,
        fieldsOf(shape).filter(name => name !== 'type'),
      ]),
    )
  })

  test('carry contents and deltas of these shapes', () => {
    const rows = rowsUnder(page, 'content')
    expect(rows.map(([type, fields]) => [bare(type), namesIn(fields?.replace(/\(.*\)/, ''))])).toEqual(
      contentSchema.options.map(({ shape }) => [shape.type.value, fieldsOf(shape).filter(name => name !== 'type')]),
    )
    const told = [
      ...rows
        .map(([, , deltas]) => deltas)
        .join(', ')
        .matchAll(/`(\w+)` \{ ([^}]+) \}/g),
      ...page.matchAll(/^`(metadata)` \{ ([^}]+) \}/gm),
    ]
    const deltas = new Map(told.map(([, type = '', fields]) => [type, namesIn(fields)]))
    expect(sorted([...deltas])).toEqual(
      sorted(deltaSchema.options.map(({ shape }) => [shape.type.value, fieldsOf(shape).filter(name => name !== 'type')])),
    )
  })
})

test.each([
  ['Task', taskSchema],
  ['TaskSummary', taskSummarySchema],
  ['Turn', turnSchema],
  ['Attempt', attemptSchema],
  ['Step', stepSchema],
  ['Message', messageSchema],
  ['Agent', agentSchema],
  ['Activity', activitySchema],
  ['Worker', workerSchema],
  ['ErrorGroup', errorGroupSchema],
  ['FeedEntry', feedEntrySchema],
  ['Schedule', scheduleSchema],
  ['ScheduleRun', scheduleRunSchema],
  ['Webhook', webhookSchema],
  ['Delivery', deliverySchema],
  ['File', fileSchema],
  ['Key', keySchema],
  ['AuditEntry', auditEntrySchema],
  ['UsageReport', usageReportSchema],
  ['Caller', callerSchema],
])('%s has the fields that it has', (name, { shape }) => {
  expect(namesIn(rowsUnder(page, 'entity').find(([entity]) => entity === name)?.[1])).toEqual(fieldsOf(shape))
})

test.each([
  ['`status` of a task', taskStatusSchema],
  ['`status` of a turn', turnStatusSchema],
  ['`status` of a message', messageStatusSchema],
  ['`stopReason`', stopReasonSchema],
  ['`author`', authorSchema],
])('%s has these values', (name, { options }) => {
  expect(namesIn(rowsUnder(page, 'field').find(([field]) => field === name)?.[1])).toEqual(options)
})

test('every format is there', () => {
  expect(rowsUnder(page, 'format').map(([name]) => bare(name))).toEqual(streamFormatSchema.options)
})

test('every code is there, with its status and whether to try again', () => {
  const told = tablesOf(page)
    .filter(({ columns }) => columns[0] === 'code')
    .flatMap(({ columns, rows }) =>
      rows.map(([code, ...cells]) => [bare(code), columns[1] === 'status' ? cells.slice(0, 2).join(' ') : cells[0]]),
    )
  const ofTheClient = namesIn(/^Two codes are the client's own: (.*)$/m.exec(page)?.[1])
  const codes = Object.entries<ErrorRow>(errorTable)
  expect(Object.fromEntries(told)).toEqual(
    Object.fromEntries(codes.filter(([code]) => !ofTheClient.includes(code)).map(([code, row]) => [code, sentenceOf(row)])),
  )
  expect(ofTheClient.length).toBe(2)
})

test('every limit is there, with its default', () => {
  const told = rowsUnder(page, 'limit').map(([name, value]) => [bare(name), value])
  expect(Object.fromEntries(told)).toEqual(
    Object.fromEntries(Object.entries(defaultLimits).map(([name, value]) => [limitNames[name as keyof Limits], amountOf(name, value)])),
  )
})

function sentenceOf({ status, retry, afterSeconds }: ErrorRow): string {
  const again = afterSeconds !== undefined ? `after ${afterSeconds} s` : retry ? 'yes' : 'no'
  return status === undefined ? again : `${status} ${again}`
}

function amountOf(name: string, value: number): string {
  if (name.endsWith('Ms')) return `${value / 1_000} s`
  if (!name.endsWith('Bytes')) return value.toLocaleString('en')
  return value % 2 ** 20 === 0 ? `${value / 2 ** 20} MiB` : `${value / 2 ** 10} KiB`
}

/** In the order of the document, each with a `?` if it may be absent. */
function fieldsUnder(column: string): [string, string[]][] {
  return rowsUnder(page, column).map(([type, fields]) => [bare(type), namesIn(fields)])
}

type Field = { safeParse(value: unknown): { success: boolean; data?: unknown } }

/** What has a default is always there. */
function fieldsOf(shape: Record<string, Field>): string[] {
  return Object.entries(shape).map(([name, field]) => {
    const absent = field.safeParse(undefined)
    return absent.success && absent.data === undefined ? `${name}?` : name
  })
}

function bare(cell = ''): string {
  return cell.replaceAll('`', '')
}

function sorted<T>(values: readonly T[]): T[] {
  return values.toSorted((a, b) => JSON.stringify(a).localeCompare(JSON.stringify(b)))
}
