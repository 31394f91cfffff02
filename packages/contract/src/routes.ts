/** Every route of the contract by its name, by which generated clients call it. */

import * as audit from './access/audit.ts'
import * as keys from './access/keys.ts'
import * as agents from './agents.ts'
import * as store from './customers/store.ts'
import * as feed from './feed.ts'
import * as files from './files.ts'
import * as limits from './limits.ts'
import * as operations from './operations.ts'
import * as a2a from './protocols/a2a.ts'
import * as agUi from './protocols/ag-ui.ts'
import * as mcp from './protocols/mcp.ts'
import * as openai from './protocols/openai.ts'
import type { Route } from './route.ts'
import * as schedules from './schedules.ts'
import * as events from './tasks/events.ts'
import * as messages from './tasks/messages.ts'
import * as state from './tasks/state.ts'
import * as tasks from './tasks/tasks.ts'
import * as tokens from './tasks/tokens.ts'
import * as turns from './tasks/turns.ts'
import * as waits from './tasks/waits.ts'
import * as usage from './usage.ts'
import * as webhooks from './webhooks.ts'
import * as internal from './workers/internal.ts'
import * as worker from './workers/worker.ts'

/** By the name of its entry. */
export const nouns: Readonly<Record<string, Readonly<Record<string, unknown>>>> = {
  ...{ agents, audit, events, feed, files, internal, keys, limits, messages },
  ...{ operations, schedules, state, store, tasks, tokens, turns, usage, waits, webhooks, worker },
  ...{ a2a, 'ag-ui': agUi, mcp, openai },
}

/** A noun also exports schemas, which are no routes. */
export const routes: ReadonlyMap<string, Route> = new Map(
  Object.values(nouns).flatMap(noun => Object.entries(noun).flatMap(([name, row]) => (isRoute(row) ? [[name, row] as const] : []))),
)

const names = new Map(Array.from(routes, ([name, row]) => [row, name]))

export function nameOf(row: Route): string {
  const name = names.get(row)
  if (name === undefined) throw new Error(`${row.method} ${row.path} has no name of its own in the table of routes`)
  return name
}

function isRoute(row: unknown): row is Route {
  return typeof row === 'object' && row !== null && 'method' in row && 'path' in row && 'returns' in row
}

/** As OpenAPI writes it: `POST /v1/tasks/{id}`. */
export function callOf({ method, path }: Route): string {
  return `${method} ${path.replaceAll(/::|:(\w+)/g, (_, name?: string) => (name === undefined ? ':' : `{${name}}`))}`
}
