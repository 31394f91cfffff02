/** What the user typed, as the request body that the server accepts. */
import type { Content, ContentOf, CreateTaskInput, Json, Task } from '@rivulet/client'

export type TaskDraft = { agent: string; input: string; isJson: boolean; params: string; name: string }

/** A task as the form for another one: texts are one text, and files stay files. Data is a text of JSON if it is all there is to edit. */
export function draftOf({ agent, params }: Task, inputs: readonly Content[]) {
  const files = inputs.filter((input): input is ContentOf<'media'> => input.type === 'media')
  const texts = inputs.flatMap(input => (input.type === 'text' ? [input.text] : []))
  const data = inputs.flatMap(input => (input.type === 'data' ? [JSON.stringify(input.data, null, 2)] : []))
  const isJson = texts.length === 0 && data.length === 1
  const given = { agent, params: params === null ? '' : JSON.stringify(params, null, 2), input: [...texts, ...data].join('\n\n'), isJson }
  return { given, files }
}

/** Throws a sentence for malformed JSON. @param secrets lines of `NAME=value` */
export function bodyOf({ agent, input, isJson, params, name }: TaskDraft, secrets = ''): CreateTaskInput {
  const pairs = secrets.split('\n').filter(line => line.trim() !== '')
  return {
    agent,
    ...(input.trim() !== '' && { input: isJson ? { type: 'data', data: parsed('The input', input) } : input }),
    ...(params.trim() !== '' && { params: parsed('The parameters', params) }),
    ...(name.trim() !== '' && { name: name.trim() }),
    ...(pairs.length > 0 && { secrets: Object.fromEntries(pairs.map(pairOf)) }),
  } as CreateTaskInput

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
