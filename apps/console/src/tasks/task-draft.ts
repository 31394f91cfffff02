/** What the user typed, as the request body that the server accepts. */
import type { Content, ContentOf, CreateTaskInput, Json, JsonObject, Task } from '@rivulet/client'
import { canDraw, type Draft, draftOf as defaultsOf, editedFrom, fieldsOf, typedFrom } from '../waits/form-fields.ts'

export type TaskDraft = {
  agent: string
  input: string
  isJson: boolean
  /** JSON. */
  params: string
  /** In the fields of the form of the params; null until the person changes one. */
  fields: Draft | null
  name: string
  /** In tokens, in US dollars and in seconds, as they were typed. */
  tokens: string
  usd: string
  delay: string
  /** Lines of `key=value`. */
  metadata: string
}

export const emptyDraft: TaskDraft = {
  ...{ agent: '', input: '', isJson: false, params: '', fields: null, name: '' },
  ...{ tokens: '', usd: '', delay: '', metadata: '' },
}

/** The fields of the form: as they were typed, else from the params as JSON, else with the defaults of the schema. */
export function shownFields(schema: JsonObject, { fields, params }: TaskDraft): Draft {
  return fields ?? { ...defaultsOf(schema), ...typedFrom(fieldsOf(schema), valueIn(params)) }
}

export function valueIn(text: string): Json {
  try {
    return JSON.parse(text)
  } catch {
    return null
  }
}

/** A task as the form for another one: texts are one text, and files stay files. Data is a text of JSON if it is all there is to edit. */
export function draftOf({ agent, params }: Task, inputs: readonly Content[]) {
  const files = inputs.filter((input): input is ContentOf<'media'> => input.type === 'media')
  const texts = inputs.flatMap(input => (input.type === 'text' ? [input.text] : []))
  const data = inputs.flatMap(input => (input.type === 'data' ? [JSON.stringify(input.data, null, 2)] : []))
  const isJson = texts.length === 0 && data.length === 1
  const given = { agent, params: params === null ? '' : JSON.stringify(params, null, 2), input: [...texts, ...data].join('\n\n'), isJson }
  return { given, files }
}

/** Throws a sentence for malformed JSON. @param schema of the agent's params @param secrets lines of `NAME=value` */
export function bodyOf(draft: TaskDraft, schema?: JsonObject, secrets = ''): CreateTaskInput {
  const { agent, input, isJson, params, name, tokens, usd, delay, metadata } = draft
  const pairs = linesOf(secrets)
  const labels = linesOf(metadata)
  const budget = { ...(tokens.trim() !== '' && { tokens: Number(tokens) }), ...(usd.trim() !== '' && { usd: Number(usd) }) }
  return {
    agent,
    ...(input.trim() !== '' && { input: isJson ? { type: 'data', data: parsed('The input', input) } : input }),
    ...(canDraw(schema)
      ? { params: editedFrom(schema, valueIn(params), shownFields(schema, draft)) }
      : params.trim() !== '' && { params: parsed('The parameters', params) }),
    ...(Object.keys(budget).length > 0 && { budget }),
    ...(delay.trim() !== '' && { delayMs: Math.round(Number(delay) * 1_000) }),
    ...(labels.length > 0 && { metadata: Object.fromEntries(labels.map(labelOf)) }),
    ...(name.trim() !== '' && { name: name.trim() }),
    ...(pairs.length > 0 && { secrets: Object.fromEntries(pairs.map(pairOf)) }),
  } as CreateTaskInput

  function labelOf(line: string): [key: string, value: string] {
    const at = line.indexOf('=')
    if (at < 1) throw new Error('The metadata: each line is key=value')
    return [line.slice(0, at).trim(), line.slice(at + 1).trim()]
  }

  function pairOf(line: string): [name: string, value: string] {
    const [, own, value] = /^\s*(\w+)=(.+)$/.exec(line) ?? []
    if (own === undefined || value === undefined) throw new Error('The secrets: each line is NAME=value')
    return [own, value]
  }

  function parsed(what: string, text: string): Json {
    try {
      return JSON.parse(text)
    } catch (reason) {
      throw new Error(`${what}: ${reason instanceof Error ? reason.message : 'not JSON'}`)
    }
  }
}

function linesOf(text: string): string[] {
  return text.split('\n').filter(line => line.trim() !== '')
}
