/** The fields of the entities and the values of their enumerations, from their schemas. */
import { entities } from '@rivulet/contract/entities'
import { authorSchema, messageStatusSchema, stopReasonSchema, taskStatusSchema, turnStatusSchema, turnWaitSchema } from '@rivulet/protocol'
import { z } from 'zod'
import { code, tableOf } from './marked-block.ts'

const enumerations = {
  '`status` of a task': taskStatusSchema,
  '`status` of a turn': turnStatusSchema,
  '`status` of a message': messageStatusSchema,
  '`status` of a wait': turnWaitSchema.shape.status,
  '`kind` of a wait': turnWaitSchema.shape.kind,
  '`stopReason`': stopReasonSchema,
  '`author`': authorSchema,
}

export function entitiesTable(): string {
  const rows = Object.entries(entities).flatMap(([name, schema]) =>
    schema instanceof z.ZodObject ? [[name, Object.entries(schema.shape).map(fieldOf).join(', ')]] : [],
  )
  return tableOf(['entity', 'fields'], rows)
}

export function valuesTable(): string {
  return tableOf(
    ['field', 'values'],
    Object.entries(enumerations).map(([name, { options }]) => [name, options.map(code).join(', ')]),
  )
}

/** A field with a default is always there. */
function fieldOf([name, schema]: [string, z.ZodType]): string {
  const absent = schema.safeParse(undefined)
  return absent.success && absent.data === undefined ? `${code(name)}?` : code(name)
}
