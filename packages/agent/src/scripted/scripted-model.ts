/**
 * A model that plays a script, for tests and for working offline. It streams like the other models and can be aborted at every point.
 *
 * Deterministic: the same script, seed and call number give the same updates. Its only state is the number of calls, so concurrent runs can
 * share it when the script is a function of the request.
 */
import { toolRequest, type Update, type Usage, untilAborted } from '@rivulet/protocol'
import { AgentError } from '../agent-error.ts'
import { createEventStream, type EventSink } from '../model/event-stream.ts'
import type { Model, ModelRequest, ModelResult } from '../model/model.ts'
import { createResponseWriter, type ResponseWriter } from '../model/response-writer.ts'
import { sleep } from '../sleep.ts'
import { replyOf, type Script, type ScriptPart, type ScriptReply } from './script.ts'
import { type Chunking, chunksOf, createRandom } from './text-chunks.ts'

export type ScriptedModelOptions = {
  /** Decides where texts are cut and which ids calls get. Default 1. */
  seed?: number
  /** Default `{ min: 1, max: 8 }`. Only that form also cuts arguments. */
  chunks?: Chunking
  /** Pause before each chunk. Default 0. */
  delayMs?: number
}

export type ScriptedModel = Model & {
  /** How often `stream` was called with a signal that was not aborted. */
  readonly calls: number
}

export function scriptedModel(script: Script, options: ScriptedModelOptions = {}): ScriptedModel {
  const { seed = 1, chunks = { min: 1, max: 8 }, delayMs = 0 } = options
  let calls = 0
  return {
    name: 'scripted',
    get calls() {
      return calls
    },
    stream: (request, { turn, signal = turn?.signal } = {}) => {
      if (signal?.aborted) return createEventStream(async ({ emit }) => aborted(createResponseWriter(emit)), { signal })
      calls += 1
      const call = calls
      return createEventStream(sink => produce(request, call, sink), { signal })
    },
  }

  async function produce(request: ModelRequest, call: number, { emit, ready, signal }: EventSink<Update>): Promise<ModelResult> {
    const writer = createResponseWriter(emit)
    const random = createRandom(seed + call * 0x9e3779b9)
    let usage: Usage = { inputTokens: tokensOf(JSON.stringify(request.messages)), outputTokens: 0 }
    try {
      const reply = await untilAborted(nextReply(request, call), signal)
      for (const part of reply.parts) await perform(part)
      usage = reply.usage ?? usage
      return writer.finish({ status: 'complete', stopReason: reply.stopReason ?? 'stop', usage })
    } catch (error) {
      if (signal.aborted) return aborted(writer, usage)
      const failure = AgentError.of(error)
      throw failure.withPartial(writer.finish({ status: 'failed', stopReason: 'error', usage, error: failure.failure }))
    }

    async function perform(part: ScriptPart): Promise<void> {
      switch (part.type) {
        case 'say':
          return stream(chunksOf(part.text, chunks, random), chunk => writer.flow('text', chunk))
        case 'think':
          return stream(chunksOf(part.text, chunks, random), chunk => writer.flow('reasoning', chunk))
        case 'call': {
          const callId = part.callId ?? `call_${Math.floor(random() * 2 ** 32).toString(36)}_${call}`
          const block = writer.open(toolRequest(callId, part.name))
          const pieces = typeof chunks === 'object' ? chunksOf(part.json, chunks, random) : [part.json]
          await stream(pieces, text => writer.append(block, { type: 'tool_request', text }))
          return writer.close(block)
        }
        case 'wait':
          return sleep(part.ms, signal)
        case 'fail':
          throw new AgentError(part.message)
        default:
          return part satisfies never
      }
    }

    async function stream(pieces: string[], write: (piece: string) => void): Promise<void> {
      for (const piece of pieces) {
        await (delayMs > 0 ? sleep(delayMs, signal) : ready())
        signal.throwIfAborted()
        usage = { ...usage, outputTokens: (usage.outputTokens ?? 0) + tokensOf(piece) }
        write(piece)
      }
    }
  }

  async function nextReply(request: ModelRequest, call: number): Promise<ScriptReply> {
    const step = typeof script === 'function' ? script : script[call - 1]
    if (step === undefined) throw new AgentError(`The script has ${script.length} steps, but this is call ${call} of the model`)
    return replyOf(typeof step === 'function' ? await step(request, call) : step)
  }
}

function aborted(writer: ResponseWriter, usage?: Usage): ModelResult {
  return writer.finish({ status: 'aborted', stopReason: 'aborted', usage })
}

/** An estimate. */
function tokensOf(text: string): number {
  return Math.ceil(text.length / 4)
}
