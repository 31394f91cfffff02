/**
 * The replies of the assistant without a configured model: a function of the conversation, so that it replies to any input without pretending to
 * be more than it is. It calls tools as a model would, and puts their results into sentences.
 */
import { call, type HistoryMessage, type ModelRequest, type ScriptPart, type ScriptStep, say, think } from '@rivulet/agent'
import { latestQuestion } from '../research/latest-question.ts'

const maxQuoted = 120
/** Characters of a question that are searched for a sum. The limit bounds the work, because the patterns of `sumIn` backtrack. */
const maxSearched = 1_000

export function offlineReply({ messages }: Pick<ModelRequest, 'messages'>): ScriptStep {
  const { question, since } = latestQuestion(messages)
  const results = since.filter(({ content }) => content.type === 'tool_response')
  if (results.length > 0) return [say(results.map(inWords).join(' '))]
  const calls = callsFor(question)
  return calls.length > 0 ? [think('A tool knows this better than I do.'), say('Let me see. '), ...calls] : [say(smallTalk(question))]
}

function callsFor(question: string): ScriptPart[] {
  const calls: ScriptPart[] = []
  if (/\b(time|clock|date|today)\b/i.test(question)) {
    const timeZone = /\b[A-Z][a-z]+\/[A-Z][A-Za-z_]+\b/.exec(question)?.[0]
    calls.push(call('current_time', timeZone ? { timeZone } : {}))
  }
  const expression = sumIn(question)
  if (expression) calls.push(call('calculate', { expression }))
  return calls
}

/** The longest stretch that looks like a sum: numbers with an operator between them. */
function sumIn(question: string): string | null {
  const stretches = question.slice(0, maxSearched).match(/[-−(]*\.?\d[\d\s.+*/%^()×÷−-]*/g) ?? []
  const sums = stretches
    .map(stretch => stretch.replace(/[\s.+*/%^(×÷−-]+$/, ''))
    .filter(stretch => /[\d)]\s*[+*/%^×÷−-]+\s*[-−(.]*\d/.test(stretch))
  return sums.sort((a, b) => b.length - a.length)[0]?.slice(0, 200) ?? null
}

function inWords({ content }: HistoryMessage): string {
  if (content.type !== 'tool_response') return ''
  if (content.isError) return `That did not work: ${String(content.content)}.`
  const { words, timeZone, expression, result } = content.content as Record<string, string | number>
  if (words !== undefined) return `It is ${words} (${timeZone}).`
  return expression !== undefined ? `${expression} = ${result}.` : JSON.stringify(content.content)
}

function smallTalk(question: string): string {
  if (question.trim() === '') return 'Hello! Ask me for the time, or give me something to calculate.'
  const quoted = question.length > maxQuoted ? `${question.slice(0, maxQuoted).toWellFormed()}…` : question
  return [
    `You said: “${quoted.trim()}”.`,
    'I am a scripted stand-in, so there is not much that I can say about it.',
    'I can tell the time, and work out sums such as 12 * (3 + 4).',
    'With OPENAI_API_KEY or OPENAI_BASE_URL set, a real model replies instead of me.',
  ].join(' ')
}
