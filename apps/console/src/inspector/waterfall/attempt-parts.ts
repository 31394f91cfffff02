/** What an attempt did, one after the other: responses of models, tools, steps, waits and children. */
import type { Content, ContentOf, Json, Message, Step, Wait } from '@rivulet/client'
import { groupsOf, isOfModel } from '../../transcript/responses.ts'
import { tokensIn } from '../../transcript/turn-usage.ts'
import { newSpan, type Outcome, outcomes, type Span, timeOf } from './span.ts'

type AttemptGiven = {
  turn: number
  attempt: number
  depth: number
  isOver: boolean
  isEarlier: boolean
  from: number
  /** The agent's, without inputs. */
  messages: readonly Message[]
  inputs: readonly Content[]
  waits: readonly Wait[]
  steps: readonly Step[]
  turnEnd: string | undefined
  /** The use and the cost of the whole turn; null where the turn has other attempts, too. */
  turnUse: { tokens: number; cost: number } | null
}

export function attemptParts(given: AttemptGiven): Span[] {
  const { turn, attempt, depth, isOver, isEarlier, messages, waits, steps, turnEnd, turnUse } = given
  const common = { turn, attempt, depth, isEarlier }
  const key = (name: string) => `${name} ${turn}.${attempt}`
  const responses = new Map(
    messages.flatMap(message => (message.content.type === 'tool_response' ? [[message.content.callId, message]] : [])),
  )
  const childCalls = new Map(waits.flatMap(wait => (wait.child && wait.callId ? [[wait.callId, wait] as const] : [])))
  const spans: Span[] = []
  let context: readonly Content[] = given.inputs
  let boundary = given.from

  for (const group of groupsOf(messages)) {
    const [message] = group as [Message]
    const { content } = message
    if (content.type === 'tool_response') {
      context = [...context, content]
      boundary = Math.max(boundary, timeOf(message.finishedAt) ?? boundary)
      if (!messages.some(other => other.content.type === 'tool_request' && other.content.callId === content.callId))
        spans.push(toolSpan(null, message))
    } else addGroup(group)
  }
  for (const wait of waits) spans.push(waitSpan(wait))
  for (const { name, startedAt, finishedAt } of steps) {
    const [from, to] = [Date.parse(startedAt ?? finishedAt), Date.parse(finishedAt)]
    const first = messages.find(each => Date.parse(each.createdAt) <= to && (timeOf(each.finishedAt) ?? to) >= from)
    spans.push(
      newSpan({
        ...common,
        key: key(`step ${name} ${from}`),
        kind: 'step',
        label: name,
        from,
        to,
        outcome: 'good',
        message: first?.index ?? null,
      }),
    )
  }
  return spans.toSorted((one, other) => one.from - other.from)

  function addGroup(group: readonly Message[]): void {
    const [first] = group as [Message]
    const last = group.at(-1) ?? first
    for (const message of group) {
      const { content } = message
      if (content.type === 'tool_request' && !childCalls.has(content.callId))
        spans.push(toolSpan(message, (responses.get(content.callId) as Message | undefined) ?? null))
    }
    const output = group.map(({ content }) => content)
    if (isOfModel(last)) {
      const ends = group.map(({ finishedAt }) => timeOf(finishedAt))
      const to = ends.includes(null) ? null : Math.max(...(ends as number[]))
      const begins = Date.parse(first.createdAt)
      const tokens = tokensIn(last.usage ? { usage: last.usage } : {})
      spans.push(
        newSpan({
          ...{
            ...common,
            key: key(`model ${first.index}`),
            kind: 'model',
            label: last.response?.model ?? 'model',
            from: Math.min(leadFrom(begins), begins),
          },
          ...{ begins, to, outcome: outcomes[last.status], model: last.response?.model ?? null },
          // If it used all that the turn used, the cost of the turn is its own.
          ...{ tokens, cost: tokens > 0 && turnUse?.tokens === tokens ? turnUse.cost : null },
          ...{ error: last.error ?? null, input: context, output, message: first.index },
        }),
      )
    } else {
      for (const { index, content, createdAt, finishedAt, status, error } of group) {
        if (content.type === 'tool_request') continue
        spans.push(
          newSpan({
            ...{
              ...common,
              key: key(`message ${index}`),
              kind: 'message',
              label: content.type,
              from: Date.parse(createdAt),
              to: timeOf(finishedAt),
            },
            ...{ outcome: outcomes[status], error: error ?? null, output: [content], message: index },
          }),
        )
      }
    }
    context = output
    boundary = Math.max(boundary, ...group.map(({ finishedAt }) => timeOf(finishedAt) ?? boundary))
  }

  /** A model is waited for from what came before its response: the attempt's begin, a tool's result, or an answer. */
  function leadFrom(begins: number): number {
    const answers = waits.map(({ answer }) => timeOf(answer?.at) ?? 0).filter(at => at <= begins)
    return Math.max(boundary, ...answers)
  }

  function toolSpan(request: Message | null, response: Message | null): Span {
    const call = request?.content.type === 'tool_request' ? request.content : null
    const result = response?.content.type === 'tool_response' ? response.content : null
    const { index, createdAt } = (request ?? response) as Message
    const from = Date.parse(createdAt)
    return newSpan({
      ...{ ...common, key: key(`tool ${index}`), kind: 'tool', label: call?.name || result?.name || 'tool', from },
      begins: timeOf(response?.createdAt ?? request?.finishedAt) ?? from,
      to: response ? timeOf(response.finishedAt) : isOver ? timeOf(request?.finishedAt ?? turnEnd) : null,
      outcome: outcomeOfTool(response, result),
      error: response?.error ?? (result?.isError ? { code: 'tool_error', message: 'The tool failed' } : (request?.error ?? null)),
      ...{ input: call ? [dataOf(call.arguments)] : [], output: result ? [dataOf(result.content)] : [], message: index },
    })
  }

  function outcomeOfTool(response: Message | null, result: ContentOf<'tool_response'> | null): Outcome {
    if (!response) return isOver ? 'stopped' : 'open'
    return result?.isError && response.status === 'complete' ? 'bad' : outcomes[response.status]
  }

  function waitSpan(wait: Wait): Span {
    const { id, name, title, child, createdAt, index, arguments: given, answer } = wait
    return newSpan({
      ...{
        ...common,
        key: key(`wait ${id}`),
        kind: child ? 'child' : 'wait',
        label: child ? `child ${name}` : title,
        child: child ?? null,
      },
      ...{ from: Date.parse(createdAt), to: endOf(wait, turnEnd), outcome: outcomeOfWait(wait), message: index ?? null },
      ...{ input: given === undefined ? [] : [dataOf(given)], output: answer?.content === undefined ? [] : [dataOf(answer.content)] },
    })
  }
}

/** A text stays a text, for reading. */
function dataOf(value: Json): Content {
  return typeof value === 'string' ? { type: 'text', text: value, format: 'plain' } : { type: 'data', data: value }
}

function endOf({ status, answer, expiresAt }: Wait, turnEnd: string | undefined): number | null {
  if (status === 'open') return null
  return timeOf(answer?.at ?? (status === 'expired' ? expiresAt : turnEnd))
}

function outcomeOfWait({ status, kind, answer }: Wait): Outcome {
  if (status === 'open') return 'open'
  if (status === 'expired') return kind === 'timer' ? 'good' : 'stopped'
  return status === 'answered' && answer?.action !== 'decline' ? 'good' : 'stopped'
}
