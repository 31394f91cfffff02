/** Parses one line of a chat completion's stream. A line that is not a chunk gives null; a chunk without content gives no events. Never throws. */
import { z } from 'zod'
import type { StreamEvent } from './stream-accumulator.ts'

const callSchema = z.object({
  index: z.int().min(0).default(0),
  id: z.string().nullish(),
  function: z.object({ name: z.string().nullish(), arguments: z.string().nullish() }).nullish(),
})

const chunkSchema = z.object({
  choices: z.array(
    z.object({
      delta: z.object({ content: z.string().nullish(), tool_calls: z.array(callSchema).nullish() }),
      finish_reason: z.string().nullish(),
    }),
  ),
})

export type ChunkResponse = z.output<typeof chunkSchema>

const prefix = 'data: '

export function parseSseLine(line: string): StreamEvent[] | null {
  if (!line.startsWith(prefix)) return null
  const data = line.slice(prefix.length)
  if (data === '[DONE]') return [{ type: 'Done' }]
  const chunk = parseChunk(data)
  return chunk && eventsOf(chunk)
}

function parseChunk(data: string): ChunkResponse | null {
  try {
    return chunkSchema.safeParse(JSON.parse(data)).data ?? null
  } catch {
    return null
  }
}

function eventsOf({ choices }: ChunkResponse): StreamEvent[] {
  const { content, tool_calls } = choices[0]?.delta ?? {}
  const text: StreamEvent[] = content ? [{ type: 'TextDelta', text: content }] : []
  return [...text, ...(tool_calls ?? []).flatMap(callEvents)]
}

function callEvents({ index, id, function: called }: z.output<typeof callSchema>): StreamEvent[] {
  const events: StreamEvent[] = []
  if (id) events.push({ type: 'ToolCallStart', index, id, name: called?.name ?? '' })
  if (called?.arguments) events.push({ type: 'ToolCallDelta', index, arguments: called.arguments })
  return events
}
