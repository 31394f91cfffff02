/** Params of a task or a turn, against what its agent has announced. The agent checks them again, with everything that it knows. */
import type { AgentSettings } from '@rivulet/contract/internal'
import { checkOf, isObject, type Json, type JsonObject, type ParamsCheck, RivuletError } from '@rivulet/protocol'
import { findAgent, settingsOf } from '../../agents/agents.ts'
import type { Transaction } from '../../connection/database.ts'
import type { Tenant } from '../../connection/tenant.ts'

/** Converting a schema takes longer than checking with it. */
const checks = new Map<string, ParamsCheck | null>()
const maxChecks = 200

export function checkParams({ params: schema }: AgentSettings, params: Json): void {
  const details = schema ? (checkFor(schema)?.(params) ?? []) : []
  if (details.length > 0) throw new RivuletError('validation_failed', 'The params do not match what the agent has announced', { details })
}

/** For a turn of a task that exists. */
export async function checkTurnParams(tx: Transaction, tenant: Tenant, agent: string, params: Json | undefined): Promise<void> {
  if (params === undefined) return
  const known = await findAgent(tx, tenant, agent)
  checkParams(settingsOf(known?.settings ?? null), params)
}

/** The fields that the agent's params may have, at any depth: clients of other protocols send the same fields to every agent. */
export function fittingParams({ params: schema }: AgentSettings, fields: JsonObject): JsonObject {
  return isObject(schema) ? fittingFields(schema, fields) : fields
}

function fittingFields({ additionalProperties, properties }: JsonObject, fields: JsonObject): JsonObject {
  const known = isObject(properties) ? properties : {}
  return Object.fromEntries(
    Object.entries(fields).flatMap(([name, value]) => {
      if (Object.hasOwn(known, name)) return [[name, fittingValue(known[name], value)]]
      return additionalProperties === false ? [] : [[name, fittingValue(additionalProperties, value)]]
    }),
  )
}

/** A value that several alternatives may describe stays as it is. */
function fittingValue(schema: Json | undefined, value: Json): Json {
  if (!isObject(schema) || typeof value !== 'object' || value === null) return value
  const kind = Array.isArray(value) ? 'array' : 'object'
  const alternatives = schema.anyOf ?? schema.oneOf
  if (Array.isArray(alternatives)) {
    const [only, ...others] = alternatives.filter(one => isObject(one) && one.type === kind)
    return others.length === 0 ? fittingValue(only, value) : value
  }
  if (schema.type !== kind) return value
  return Array.isArray(value) ? value.map(item => fittingValue(schema.items, item)) : fittingFields(schema, value)
}

function checkFor(schema: JsonObject): ParamsCheck | null {
  const text = JSON.stringify(schema)
  const known = checks.get(text)
  if (known !== undefined) return known
  const check = checkOf(schema)
  const [oldest] = checks.keys()
  if (checks.size >= maxChecks && oldest !== undefined) checks.delete(oldest)
  checks.set(text, check)
  return check
}
