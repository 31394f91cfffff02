/**
 * A route reads and changes a task as its caller, not as the caller's tenant: a key may be limited to some agents of the tenant. Reads have
 * `databaseFor(principal)` or `listsFor(principal)`, and for the root key alone `everyone`; a transaction is of the whole tenant, and holds the task that the
 * caller names by `lockTask`, which takes the principal.
 */
import { expect, test } from 'vitest'
import { aimedCalls } from '../support/calls/aimed-calls.ts'
import { filesUnder, readText } from './repository.ts'

/** These use the whole tenant's database: for a transaction, which they open, and for responses under an Idempotency-Key, which are the caller's own. */
const opensTransaction = /(?:respondOnce|audited|earlierResponse|taskTransaction)\(\s*$/

/** Entities that are no tasks: the guard or the route has checked the one of the path. A new task is of the agent that its body names, which `commitTask` checks. */
const takesTenant =
  /import \{[^}]*\b(?<name>NAME)\b[^}]*\} from '[./]*store\/(?:agents|schedules|feed|memory|access\/audit|tasks\/accept\/create-task)/

function readsByTenant(source: string): string[] {
  const connections = Array.from(source.matchAll(/(?:databaseFor|listsFor)\(([^()]*)\)/g), ({ 0: text, 1: whose = '', index }) => {
    const isChange = source.startsWith('.transaction(', index + text.length) || opensTransaction.test(source.slice(0, index))
    return /(?:^|\.)principal$/.test(whose) || whose === 'everyone' || isChange ? null : text
  })
  const calls = Array.from(source.matchAll(/(\w+)\(\s*(?:tx|inner),\s*(?:(?:\w+\.)*tenant\b|\{ tenant)/g), ([text, name = '']) =>
    // The admission counts the turns of the tenant.
    name === 'admit' || RegExp(takesTenant.source.replace('NAME', name)).test(source) ? null : text,
  )
  return [...connections, ...calls].flatMap(found => found ?? [])
}

test.each([
  ['const task = await getTask(databaseFor(tenant), tenant, id)', 'databaseFor(tenant)'],
  ['const db = databaseFor(request.principal.tenant)', 'databaseFor(request.principal.tenant)'],
  ['databaseFor(principal.tenant).transaction(tx => getTask(tx, principal.tenant, id))', 'getTask(tx, principal.tenant'],
  ['databaseFor(tenant).transaction(tx => lockTask(tx, { tenant }, id))', 'lockTask(tx, { tenant'],
])('the rule finds %s', (source, found) => {
  expect(readsByTenant(source)).toEqual([found])
})

test.each([
  'const task = await getTask(databaseFor(request.principal), tenant, id)',
  'await databaseFor(principal.tenant).transaction(tx => lockTask(tx, principal, id))',
  "import { deleteWebhook } from '../../store/feed/webhooks.ts'\naudited(databaseFor(tenant), request, change, tx => deleteWebhook(tx, tenant, id))",
])('the rule takes %s', source => {
  expect(readsByTenant(source)).toEqual([])
})

test('no route reads or changes a task by the tenant of its caller alone', () => {
  const folders = ['apps/api/src/http', 'apps/api/src/protocols'].map(folder =>
    filesUnder(folder).filter(path => path.endsWith('.ts') && !path.endsWith('.test.ts')),
  )
  for (const files of folders) expect(files.length).toBeGreaterThan(30)
  expect(folders.flat().flatMap(path => readsByTenant(readText(path)).map(found => `${path}: ${found}`))).toEqual([])
})

test.each([
  ['POST /a2a/{agent}', 'apps/api/src/protocols/a2a/a2a-rpc.ts'],
  ['POST /mcp', 'apps/api/src/protocols/mcp/mcp.ts'],
])('each method of %s is aimed at what another caller owns', (route, file) => {
  const methods = Array.from(readText(file).matchAll(/case '([^']+)':|rpc\.method !== '([^']+)'/g), ([, name, other]) => name ?? other)
  const aimed = Object.keys(aimedCalls).flatMap(name => (name.startsWith(`${route} `) ? [name.slice(route.length + 1).split(' ')[0]] : []))
  expect(methods.length).toBeGreaterThan(8)
  expect(methods.filter(method => !aimed.includes(method))).toEqual([])
})
