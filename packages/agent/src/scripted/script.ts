/** The script of a scripted model: replies made of parts, either fixed or computed from the request. */
import type { Json, StopReason, Usage } from '@rivulet/protocol'
import type { ModelRequest } from '../model/model.ts'

export type ScriptPart =
  | { type: 'say'; text: string }
  | { type: 'think'; text: string }
  | { type: 'call'; name: string; json: string; callId?: string }
  | { type: 'wait'; ms: number }
  | { type: 'fail'; message: string }

export type ScriptReply = { parts: readonly ScriptPart[]; stopReason?: StopReason; usage?: Usage }

/** A string is a reply of one text. An array is a reply with the stop reason `stop`. */
export type ScriptStep = string | readonly ScriptPart[] | ScriptReply

/** @param call the number of this call of the model, from 1. */
export type ScriptFactory = (request: ModelRequest, call: number) => ScriptStep | Promise<ScriptStep>

/** One step for each call of the model, in order; or one function for every call. */
export type Script = readonly (ScriptStep | ScriptFactory)[] | ScriptFactory

export function say(text: string): ScriptPart {
  return { type: 'say', text }
}

export function think(text: string): ScriptPart {
  return { type: 'think', text }
}

export function call(name: string, args: Json = {}, callId?: string): ScriptPart {
  return callText(name, JSON.stringify(args), callId)
}

/** A call with this argument text, which need not be valid JSON. */
export function callText(name: string, json: string, callId?: string): ScriptPart {
  return { type: 'call', name, json, ...(callId !== undefined && { callId }) }
}

export function wait(ms: number): ScriptPart {
  return { type: 'wait', ms }
}

export function fail(message: string): ScriptPart {
  return { type: 'fail', message }
}

export function replyOf(step: ScriptStep): ScriptReply {
  if (typeof step === 'string') return { parts: [say(step)] }
  return 'parts' in step ? step : { parts: step }
}
