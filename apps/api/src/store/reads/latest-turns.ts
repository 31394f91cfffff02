/**
 * The latest turns of a task, with as many of their inputs and params as fit a budget, newest turn first. Values that do not fit stay in
 * Postgres and are listed in `omitted`; a request for one turn returns all of it.
 */
import { maxPageSize, type TaskId, type Turn } from '@rivulet/protocol'
import type { Database } from '../connection/database.ts'
import { columnsOf, fromJsonRow, type JsonRow } from '../connection/json-rows.ts'
import { everyTenant, type Tenant } from '../connection/tenant.ts'
import { toTurn } from '../rows.ts'
import { turns } from '../schema.ts'
import { bytesOf, fitKeys } from './byte-budget.ts'

/** A row of `turn_rows`. */
export type TurnJsonRow = JsonRow & { omitted: string[] }

/** Every column but those that a budget may leave out. */
const others = columnsOf(turns, { except: ['input', 'params'] })

/**
 * Parts of a `with recursive`. The last is `turn_rows`: a row with `rows`, ascending. A key is the number of a turn for its input, and minus that for
 * its params.
 */
export function turnParts(range: { condition: string; maxBytes: string; spent?: string }): string {
  const { condition, maxBytes, spent = '0' } = range
  const value = (key: string) =>
    `select ${bytesOf(`case when ${key} > 0 then input else params end`)} from turns where number = abs(${key})`
  return `
turn_page as (
  select number, input is not null as has_input, params is not null as has_params
  from turns where ${condition} order by number desc limit ${maxPageSize}
), turn_keys as (
  select array(
    select key from (
      select number, number as key from turn_page where has_input union all
      select number, -number from turn_page where has_params
    ) as value order by number desc, key desc
  ) as keys
),${fitKeys({ name: 'turn', bytesAt: key => `(${value(key)} and ${condition})`, maxBytes, spent })}, turn_rows as (
  select coalesce(json_agg(to_json(shown) order by number), '[]') as rows from (
    select ${others},
      case when number = any(fitting) then input end as input,
      case when -number = any(fitting) then params end as params,
      array(
        select 'input' where has_input and number <> all(fitting) union all
        select 'params' where has_params and -number <> all(fitting)
      ) as omitted
    from turn_page join turns using (number), (select keys[1:count] as fitting from turn_keys, turn_fit) as fit
    where ${condition}
  ) as shown
)`
}

const latestText = `with recursive ${turnParts({ condition: `task = $1 and $2 in (tenant, '${everyTenant}')`, maxBytes: '$3' })}
select rows from turn_rows`

/** Ascending, the latest hundred. */
export async function latestTurns(db: Database, tenant: Tenant, task: TaskId, maxBytes: number, toShown = toTurn): Promise<Turn[]> {
  const { rows } = await db.$client.query({ name: 'latest_turns', text: latestText, values: [task, tenant, maxBytes] })
  const [found] = rows as { rows: TurnJsonRow[] }[]
  return found?.rows.map(row => toShown(fromJsonRow(turns, row), row.omitted)) ?? []
}
