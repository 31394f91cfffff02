/** docs/http-reference.md is complete where it is written by hand: the fields of each call, the events, contents and formats. */

import { streamFormatSchema } from '@rivulet/contract/fields'
import type { Route } from '@rivulet/contract/route'
import { routes } from '@rivulet/contract/routes'
import { auditActions } from '@rivulet/contract/scopes'
import { contentSchema, deltaSchema, eventSchema, tokenEventSchema, wireEventSchema } from '@rivulet/protocol'
import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import { namesIn, rowsUnder, tablesOf } from './markdown-table.ts'
import { readText } from './repository.ts'

const page = readText('docs/http-reference.md')
const rows = [...routes.values()]

describe('calls', () => {
  test('of workers are all there', () => {
    const own = Array.from(page.matchAll(/`(\/internal\/\w+)`/g), ([, path]) => `POST ${path}`)
    const open = readText('docs/worker-protocol.md').matchAll(/`((?:GET|POST) \/worker\/v1\/[\w/:]+)`/g)
    const named = new Set([...own, ...Array.from(open, ([, call = '']) => call)])
    expect([...named].sort()).toEqual(
      rows
        .filter(({ scope }) => scope === 'worker')
        .map(nameOf)
        .sort(),
    )
  })

  test('that take a body or a query have a section with its fields', () => {
    const sections = page.split(/^(?=#)/m).flatMap(section => {
      const [, call] = /^### `(\w+ \/\S+)`$/m.exec(section) ?? []
      return call ? [[call, fieldsIn(section)]] : []
    })
    // The fields of calls of other protocols are in docs/dialects.md.
    const taking = rows.filter(row => row.path.startsWith('/v1/') && fieldsOfCall(row).length > 0)
    expect(Object.fromEntries(sections)).toEqual(Object.fromEntries(taking.map(row => [nameOf(row), fieldsOfCall(row)])))
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

test('every format is there', () => {
  expect(rowsUnder(page, 'format').map(([name]) => bare(name))).toEqual(streamFormatSchema.options)
})

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

function nameOf({ method, path }: Route): string {
  return `${method} ${path}`
}

type JsonSchema = { properties?: object; anyOf?: JsonSchema[]; oneOf?: JsonSchema[] }

function fieldsOfCall({ query, body }: Route): string[] {
  const schemas = [query, body].flatMap(schema =>
    schema ? [z.toJSONSchema(schema, { io: 'input', unrepresentable: 'any' }) as JsonSchema] : [],
  )
  return schemas.flatMap(propertiesOf).toSorted()
}

function propertiesOf({ properties = {}, anyOf = [], oneOf = [] }: JsonSchema): string[] {
  return [...Object.keys(properties), ...[...anyOf, ...oneOf].flatMap(propertiesOf)]
}

/** A name with a part in angle brackets stands for many. */
function fieldsIn(section: string): string[] {
  const tables = tablesOf(section).filter(({ columns }) => columns[0] === 'body' || columns[0] === 'query')
  const names = tables.flatMap(({ rows }) => rows.flatMap(([cell]) => namesIn(cell)))
  return names.filter(name => !name.includes('<')).toSorted()
}

function bare(cell = ''): string {
  return cell.replaceAll('`', '')
}

function sorted<T>(values: readonly T[]): T[] {
  return values.toSorted((a, b) => JSON.stringify(a).localeCompare(JSON.stringify(b)))
}
