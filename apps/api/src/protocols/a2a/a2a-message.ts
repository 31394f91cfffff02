/**
 * The messages that clients of A2A send, of 1.0 and of 0.3: their parts as contents of an input, or as the responses to what a turn asks for.
 * They are lenient: unknown fields are ignored, and an empty text stands for a field that is absent, as the SDKs write it.
 */
import { ofFile, type Part, type SendParams } from '@rivulet/contract/a2a'
import { type AnswerBody, answerBody } from '@rivulet/contract/waits'
import { type Content, fileIdSchema, type Json, text, type Wait, waitIdSchema } from '@rivulet/protocol'
import type { WaitResponse } from '../../http/requests/answer-waits.ts'
import { RpcError } from '../json-rpc.ts'

/** A client that asks for push notifications would wait for them in vain. */
export function rejectPush({ configuration }: SendParams): void {
  if (configuration?.taskPushNotificationConfig || configuration?.pushNotificationConfig) throw noPush()
}

export function noPush(): RpcError {
  return new RpcError('pushNotificationNotSupported', 'Push notifications are webhooks of the API: POST /v1/webhooks')
}

export function contentsOf(parts: readonly Part[]): Content[] {
  return parts.map(contentOf)
}

function contentOf({ text: given, raw, url: link, data, file, mediaType, filename }: Part, place: number): Content {
  if (given !== undefined) return text(given)
  if (data !== undefined) return { type: 'data', data }
  const name = filename ?? file?.name
  const about = { mimeType: mediaType ?? file?.mimeType ?? 'application/octet-stream', ...(name !== undefined && { name }) }
  const [bytes, uri] = [raw ?? file?.bytes, link ?? file?.uri]
  if (bytes !== undefined) return { type: 'media', ...about, data: bytes }
  const [, id] = ofFile.exec(uri ?? '') ?? []
  if (id !== undefined) return { type: 'media', ...about, file: fileIdSchema.parse(id) }
  if (uri !== undefined) return { type: 'media', ...about, url: uri }
  throw new RpcError('invalidParams', `Invalid params: /message/parts/${place} A part has text, data, bytes or a URL`)
}

const given = answerBody.extend({ wait: waitIdSchema })

/** Data parts `{ wait, action, content?, comment? }` respond to the waits that they name. Text, or the values of a form, respond where one wait is open. */
export function responsesOf(parts: readonly Part[], open: readonly Wait[]): WaitResponse[] {
  const named = parts.flatMap(({ data }) => (isObject(data) && 'wait' in data ? [data] : []))
  if (named.length > 0)
    return named.map(data => {
      const parsed = given.safeParse(data)
      if (!parsed.success) throw new RpcError('invalidParams', 'Invalid params: a response has { wait, action, content?, comment? }')
      const { wait, ...answer } = parsed.data
      return { wait, answer }
    })
  const [wait, ...others] = open
  const answer = wait && others.length === 0 ? answerWithoutName(wait, parts) : null
  if (!wait || !answer)
    throw new RpcError('invalidParams', 'The task waits for an answer: send a data part { wait, action, content? }, as its status shows')
  return [{ wait: wait.id, answer }]
}

function answerWithoutName(wait: Wait, parts: readonly Part[]): AnswerBody | null {
  const [values, ...others] = parts.flatMap(({ data }) => (isObject(data) ? [data] : []))
  if (wait.kind === 'form' && values && others.length === 0) return { action: 'accept', content: values }
  const text = parts.flatMap(({ text: part }) => part ?? []).join('\n')
  return text === '' ? null : answerOf(wait, text)
}

/** Null where a text is not enough. */
function answerOf({ kind, schema }: Wait, text: string): AnswerBody | null {
  if (kind === 'tool') return { action: 'accept', content: text }
  if (kind === 'approval') {
    const word = text.trim().toLowerCase()
    return accepting.has(word) ? { action: 'accept' } : declining.has(word) ? { action: 'decline' } : null
  }
  const fields = Object.entries(isObject(schema?.properties) ? schema.properties : {})
  const [[name, field] = ['', null], ...rest] = fields
  return rest.length === 0 && isObject(field) && field.type === 'string' ? { action: 'accept', content: { [name]: text } } : null
}

const accepting: ReadonlySet<string> = new Set(['accept', 'approve', 'approved', 'yes', 'ok'])
const declining: ReadonlySet<string> = new Set(['decline', 'deny', 'denied', 'reject', 'no'])

function isObject(value: Json | undefined): value is { [key: string]: Json } {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
