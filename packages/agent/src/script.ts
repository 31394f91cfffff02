/** What a scripted model is to say: replies made of parts, written down or made up from the request. */
import type { Json, StopReason, Usage } from '@rivulet/protocol'
import type { ModelRequest } from './model.ts'

export type ScriptPart =
  | { type: 'say'; text: string }
  | { type: 'think'; text: string }
  | { type: 'call'; name: string; json: string; callId?: string }
  | { type: 'wait'; ms: number }
  | { type: 'fail'; message: string }

export type ScriptReply = { parts: readonly ScriptPart[]; stopReason?: StopReason; usage?: Usage }

/** A string is a text; an array is a reply that stops by itself. */
export type ScriptStep = string | readonly ScriptPart[] | ScriptReply

/** @param call the number of this call of the model, from 1. */
export type ScriptFactory = (request: ModelRequest, call: number) => ScriptStep | Promise<ScriptStep>

/** One step for each call of the model, in order; or one function for all of them, which never runs out. */
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

/** A call with arguments as they stand, which need not be JSON. */
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
