/**
 * Whether a history kept the promises P1 to P6, as pure functions. Each violation is a sentence that begins with its promise.
 *
 * P1 what was accepted ends. P2 there is one result: all of it is what one attempt said. P3 what was announced is stored. P4 a viewer's stream is
 * honest. P5 what is lost is not lost silently. P6 every stored attempt was run, and no worker wrote after it had lost the turn.
 */
import { isDeepStrictEqual } from 'node:util'
import { hasEnded, type Message, seqOf, type Turn } from '@rivulet/protocol'
import type { Journal } from '../../support/judge/journal-lines.ts'
import { faultsIn } from '../../support/judge/judge.ts'
import { twoContentsIn } from '../../support/judge/one-content.ts'
import { faultsOfLog, faultsOfRows } from '../../support/judge/task-laws.ts'
import type { Frame } from '../../support/viewers/viewer-connection.ts'
import type { Answered, History, Promised, Stored } from './history.ts'
import { inputOf, type Story, textsOf } from './story.ts'
import { faultsOfTelling } from './telling.ts'

export function violationsIn(history: History): string[] {
  const stored = new Map(history.stored.map(entry => [entry.detail.task.id, entry]))
  const stories = new Map(history.promised.map(({ task, story }) => [`${task} ${story.turnNumber}`, story]))
  return [
    ...history.promised.flatMap(promised => faultsOfPromise(promised, stored.get(promised.task))),
    ...history.stored.flatMap(entry => faultsOfStored(entry, history)),
    ...history.answered.flatMap(answered => faultsOfAnswer(answered, stored.get(answered.task))),
    ...history.looks.flatMap(look => faultsOfLook(look, stored.get(look.task))),
    ...history.viewers.flatMap(journal => faultsOfViewer(journal, stored.get(journal.task), history)),
    ...history.stored.flatMap(({ detail: { task } }) =>
      twoContentsIn(history.viewers.filter(journal => journal.task === task.id)).map(fault => `P4 ${task.id}: ${fault}`),
    ),
    ...history.viewers.flatMap(journal =>
      faultsOfTelling(journal, turnNumber => stories.get(`${journal.task} ${turnNumber}`)).map(fault => `P4 ${fault}`),
    ),
    ...faultsOfAppends(history),
  ]
}

function faultsOfPromise({ task, story }: Promised, stored: Stored | undefined): string[] {
  const about = `${story.label} (${task}), turn ${story.turnNumber}`
  const turn = stored?.detail.turns.find(({ number }) => number === story.turnNumber)
  if (!stored || !turn) return [`P1 ${about} was accepted and is not there`]
  if (!hasEnded(turn.status)) return [`P1 ${about} was accepted and is ${turn.status}`]
  const rows = stored.messages.filter(message => message.turn === story.turnNumber)
  const [input, ...said] = rows
  if (!input) return turn.startedAt ? [`P2 ${about} has begun, and its input is not stored`] : []
  return [
    ...(textOf(input) === inputOf(story) && input.author === 'user' ? [] : [`P2 ${about} has another input: ${textOf(input)}`]),
    ...faultsOfTexts(said, turn, story).map(fault => `P2 ${about} ${fault}`),
  ]
}

/** A turn that was completed has said all of it, and one that was not a beginning of it: never anything else. */
function faultsOfTexts(said: Message[], turn: Turn, story: Story): string[] {
  const foreign = said.filter(({ attempt }) => attempt !== turn.attempt && !story.asks)
  if (foreign.length > 0 && turn.status === 'completed') return [`is stored with messages of attempt ${foreign[0]?.attempt}`]
  const attempt = said[0]?.attempt ?? turn.attempt
  const all = textsOf(story, attempt)
  const texts = said.map(textOf)
  if (turn.status === 'completed')
    return isDeepStrictEqual(texts, all) ? [] : [`is stored as ${brief(texts)}, but attempt ${attempt} said ${brief(all)}`]
  const isBeginning = texts.every((text, i) => (i === texts.length - 1 ? all[i]?.startsWith(text) : all[i] === text))
  return isBeginning ? [] : [`is ${turn.status} with ${brief(texts)}, which is no beginning of ${brief(all)}`]
}

function faultsOfStored({ detail, messages }: Stored, { logs, runs }: History): string[] {
  const { id } = detail.task
  const log = logs.get(id)
  const completed = detail.turns.filter(({ status }) => status === 'completed')
  return [
    ...messages.filter(({ index }, i) => index !== i).map(({ index }) => `P2 ${id}: index ${index} is out of place`),
    ...messages.filter(({ status }) => status === 'streaming').map(({ index }) => `P2 ${id}: message ${index} is stored while it streams`),
    ...completed
      .filter(turn => !runs.some(run => run.task === id && run.turnNumber === turn.number && run.attempt === turn.attempt))
      .map(({ number, attempt }) => `P6 ${id}: attempt ${attempt} of turn ${number} is stored, but no worker ran it`),
    ...(log ? [...faultsOfRows(messages, log), ...faultsOfLog(detail, log)].map(fault => `P2 ${id}: ${fault}`) : []),
  ]
}

/** An answer that got a 200 is the one that is stored. */
function faultsOfAnswer({ task, wait: id, action }: Answered, stored: Stored | undefined): string[] {
  const wait = stored?.detail.turns.flatMap(({ waits = [] }) => waits).find(wait => wait.id === id)
  return wait?.answer?.action === action
    ? []
    : [`P3 ${task}: wait ${id} was answered by ${action}, and is stored as ${JSON.stringify(wait)}`]
}

/** A viewer that receives `turn.finished` can read the rows. */
function faultsOfLook({ task, turnNumber: number, detail, messages }: History['looks'][number], stored: Stored | undefined): string[] {
  const about = `P3 turn ${number} of ${task} was announced`
  const seen = detail.turns.find(turn => turn.number === number)
  const kept = stored?.detail.turns.find(turn => turn.number === number)
  if (!seen || !hasEnded(seen.status)) return [`${about}, and was ${seen?.status ?? 'not there'} when read`]
  const isSame = isDeepStrictEqual(
    messages.filter(({ turn: turnNumber }) => turnNumber === number),
    stored?.messages.filter(({ turn: turnNumber }) => turnNumber === number),
  )
  return [
    ...(kept?.status === seen.status && kept.attempt === seen.attempt ? [] : [`${about} as ${seen.status}, and is ${kept?.status} now`]),
    ...(isSame ? [] : [`${about}, and its messages have changed since`]),
  ]
}

function faultsOfViewer(journal: Journal, stored: Stored | undefined, history: History): string[] {
  const { logs, hasLost } = history
  const log = logs.get(journal.task)
  const frames = journal.connections.flatMap(connection => connection.frames)
  const isTold = frames.some(({ data }) => data.type === 'end') || journal.connections.at(-1)?.status === 204
  const announced = frames.flatMap(({ data }) => (data.type === 'turn.finished' ? [data] : []))
  const evidence = { ...(stored && { rows: owedTo(journal, stored, history) }), ...(log && { log: log.map(({ cursor }) => cursor) }) }
  return [
    ...faultsIn(journal, evidence).map(fault => `P4 ${fault}`),
    ...(isTold ? [] : [`P4 a viewer of ${journal.task} was never told that it is over`]),
    ...announced
      .filter(({ turn: turnNumber, status }) => stored?.detail.turns.find(({ number }) => number === turnNumber)?.status !== status)
      .map(({ turn: turnNumber, status }) => `P3 a viewer of ${journal.task} received that turn ${turnNumber} is ${status}`),
    ...(hasLost ? [] : needlessGaps(journal)).map(
      ({ id }) => `P5 a viewer of ${journal.task} received a gap at ${id}, and nothing was lost`,
    ),
  ]
}

/**
 * A turn that was accepted before the last one that a viewer knows had ended is owed to it; one that came later begins after its end. Times are those of
 * the beginning of transactions, so a turn that is not in the details or in the viewer's snapshot of after that end came later, too, and so may one whose
 * acceptance was not known when the viewer left.
 */
function owedTo({ task, connections, laterTurns = [] }: Journal, { detail, messages }: Stored, { looks }: History): Message[] {
  const frames = connections.flatMap(connection => connection.frames.map(({ data }) => data))
  const known = new Set(
    frames.flatMap(data => ('turns' in data ? data.turns.map(({ number }) => number) : 'turn' in data ? [data.turn] : [])),
  )
  const last = detail.turns.findLast(({ number }) => known.has(number))
  const after = [
    ...looks.flatMap(look => (look.task === task && look.turnNumber === last?.number ? [look.detail.turns] : [])),
    ...frames.flatMap(data => ('turns' in data ? [data.turns] : [])),
  ].filter(turns => turns.some(({ number, status }) => number === last?.number && hasEnded(status)))
  const cameLater = (turnNumber: number) =>
    laterTurns.includes(turnNumber) || after.some(turns => !turns.some(({ number }) => number === turnNumber))
  const isOwed = ({ number, queuedAt }: Turn) =>
    known.has(number) || !last?.finishedAt || (queuedAt < last.finishedAt && !cameLater(number))
  const owed = new Set(detail.turns.filter(isOwed).map(({ number }) => number))
  return messages.filter(({ turn: turnNumber }) => owed.has(turnNumber))
}

/**
 * A log that is not there yet looks like one that is gone. A viewer that joined before it was opened, at `<epoch>-0`, may get a gap when it is, and so
 * may a viewer that asks for the start of a log that was opened late: they have received nothing, and lose nothing.
 */
function needlessGaps({ connections }: Journal): Frame[] {
  return connections.flatMap(({ after, frames }) =>
    frames.filter(({ data }, i) => {
      const before = frames[i - 1]?.id ?? after
      return data.type === 'snapshot' && data.reason === 'gap' && before !== null && seqOf(before) > 0
    }),
  )
}

/** Every acknowledged entry of a worker is in the log, once, under the epoch that it wrote in. */
function faultsOfAppends({ appends, logs }: History): string[] {
  return appends.flatMap(({ task, epoch, events, result }) => {
    const log = logs.get(task)
    if (!log || (result !== 'ok' && result !== 'duplicate')) return []
    const own = log.filter(({ cursor }) => cursor.startsWith(`${epoch}-`)).map(({ event }) => event)
    return events.flatMap(json => {
      const count = own.filter(event => isDeepStrictEqual(event, JSON.parse(json))).length
      return count === 1
        ? []
        : [`P6 ${task}: an append of epoch ${epoch} was answered ${result}, and stands ${count} times in the log: ${json}`]
    })
  })
}

function textOf({ content }: Message): string {
  return content.type === 'text' ? content.text : ''
}

function brief(texts: readonly string[]): string {
  return JSON.stringify(texts).slice(0, 600)
}
