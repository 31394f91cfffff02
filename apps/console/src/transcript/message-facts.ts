/** The time of a message and, if a response of a model ends with it, the model, its tokens and how fast it wrote them. */
import type { Message } from '@rivulet/client'
import { count } from '../shell/human-units.ts'
import { tokensIn } from './turn-usage.ts'

/** A rate over less time is noise. */
const leastRateMs = 100

/** @param begins of the whole response, because its usage is that of all its messages; null where that is not known */
export function factsOf({ createdAt, finishedAt, usage, response }: Message, begins: number | null): string[] {
  const ms = finishedAt && begins !== null ? Date.parse(finishedAt) - begins : 0
  const tokens = tokensIn(usage ? { usage } : {})
  const written = usage?.outputTokens ?? 0
  return [
    new Date(createdAt).toLocaleTimeString('en-GB'),
    response?.model ?? '',
    tokens > 0 ? `${count(tokens)} tokens` : '',
    written > 0 && ms >= leastRateMs ? `${count(Math.round((written * 1_000) / ms))} tokens/s` : '',
  ].filter(Boolean)
}
