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
import { endedList } from '../turns/turn-states.ts'
import { bytesOf, fitKeys } from './byte-budget.ts'

/** A row of `turn_rows`. */
export type TurnJsonRow = JsonRow & { omitted: string[] }

/** Every column but those that a budget may leave out. */
const others = columnsOf(turns, { except: ['input', 'inputs', 'params', 'waits'] })

/**
 * Parts of a `with recursive`. The last is `turn_rows`: a row with `rows`, ascending. A key is three times the number of a turn for its inputs, one less
 * for its params, two less for its waits. The waits of a turn that has not ended are always there: they are few, and someone has to answer them.
 */
export function turnParts(range: { condition: string; maxBytes: string; spent?: string }): string {
  const { condition, maxBytes, spent = '0' } = range
  const value = (key: string) =>
    `select ${bytesOf(`case (${key}) % 3 when 0 then coalesce(inputs, input) when 2 then params else waits end`)} from turns where number = ((${key}) + 2) / 3`
  return `
turn_page as (
  select number, input is not null as has_input, params is not null as has_params,
    waits is not null and status in (${endedList}) as has_old_waits
  from turns where ${condition} order by number desc limit ${maxPageSize}
), turn_keys as (
  select array(
    select key from (
      select number, number * 3 as key from turn_page where has_input union all
      select number, number * 3 - 1 from turn_page where has_params union all
      select number, number * 3 - 2 from turn_page where has_old_waits
    ) as value order by number desc, key desc
  ) as keys
),${fitKeys({ name: 'turn', bytesAt: key => `(${value(key)} and ${condition})`, maxBytes, spent })}, turn_rows as (
  select coalesce(json_agg(to_json(shown) order by number), '[]') as rows from (
    select ${others},
      case when number * 3 = any(fitting) then input end as input,
      case when number * 3 = any(fitting) then inputs end as inputs,
      case when number * 3 - 1 = any(fitting) then params end as params,
      case when not has_old_waits or number * 3 - 2 = any(fitting) then waits end as waits,
      array(
        select 'input' where has_input and number * 3 <> all(fitting) union all
        select 'params' where has_params and number * 3 - 1 <> all(fitting) union all
        select 'waits' where has_old_waits and number * 3 - 2 <> all(fitting)
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
