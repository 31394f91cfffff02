/** The laws of the worker protocol, each as a trial of a foreign worker. A trial returns what it has seen, and throws what breaks the law. */
import { performance } from 'node:perf_hooks'
import { type Bench, type Ending, leaseMs, quote } from './bench.ts'

type Law = { name: string; try: (bench: Bench) => Promise<string> }

const strange = ['plain', 'ä', '日本語', '😀', '👩‍👩‍👧', 'e\u0301', '"quoted"', '\\n', '</script>', '\u2028', '{"a":1}', "it's", '%s', '%']
const resent = ['append', 'step', 'ask', 'park', 'finish']

export const laws: readonly Law[] = [
  { name: 'exact text', try: exactText },
  { name: 'idempotent repeats', try: idempotentRepeats },
  { name: 'steps not run twice', try: stepsOnce },
  { name: 'waits', try: waits },
  { name: 'cancel within a second', try: cancel },
  { name: 'fenced after a lost lease', try: fenced },
  { name: 'drain', try: drain },
]

/** What `conform-echo` makes of words. */
export function expectText({ texts }: Ending, words: readonly string[]): void {
  const [text = '', ...others] = texts
  if (others.length > 0) throw new Error(`the messages are ${quote(texts)}, not one`)
  const expected = words.map(word => `${word} `).join('')
  if (text === expected) return
  let at = 0
  while (at < expected.length && text[at] === expected[at]) at += 1
  throw new Error(`from character ${at + 1} the text is ${quote([text.slice(at)])}, not ${quote([expected.slice(at)])}`)
}

/** The result of a step is a random text: attempts that show two of them have run the step twice. */
export function expectOneResult({ texts, shown }: Ending): void {
  if (texts.length !== 1 || !/^.{8,}$/.test(texts[0] ?? ''))
    throw new Error(`the messages are ${quote(texts)}, not one with the result of the step`)
  const others = Array.from(shown).filter(text => text !== '' && !texts[0]?.startsWith(text))
  if (others.length > 0) throw new Error(`the step has run twice: its results are ${quote([...others, ...texts])}`)
}

export function expectAnswer({ texts }: Ending): void {
  if (JSON.stringify(texts) !== '["before","accept"]') throw new Error(`the messages are ${quote(texts)}, not ["before","accept"]`)
}

function expectAttempt({ attempt }: Ending, expected: number): void {
  if (attempt !== expected) throw new Error(`the turn took ${attempt} attempts, not ${expected}`)
}

const wordsOf = (count: number) => Array.from({ length: count }, (_, i) => `word${i}`)

async function exactText(bench: Bench): Promise<string> {
  await bench.worker()
  const texts = [strange, wordsOf(3_000), ...Array.from({ length: 10 }, (_, i) => [...strange.slice(i), ...wordsOf(i)])]
  await Promise.all(
    texts.map(async words => {
      const end = await bench.ending(await bench.task('conform-echo', words.join(' ')))
      expectText(end, words)
      expectAttempt(end, 1)
    }),
  )
  return `${texts.length} tasks`
}

async function idempotentRepeats(bench: Bench): Promise<string> {
  await bench.worker()
  const counts = new Map<string, number>()
  const before = bench.proxy.withheld
  bench.proxy.withhold(call => {
    const count = (counts.get(call) ?? 0) + 1
    counts.set(call, count)
    return resent.includes(call) && count % 2 === 1
  })
  const words = wordsOf(100)
  const echo = await bench.task('conform-echo', words.join(' '), { pauseMs: 10 })
  const step = await bench.task('conform-step', 'go')
  const ask = await bench.task('conform-ask', 'go')
  const ends = [bench.ending(echo), bench.ending(step), bench.ending(ask)] as const
  await ask.answer(await bench.openWait(ask), { action: 'accept' })
  const [echoed, stepped, asked] = await Promise.all(ends)
  expectText(echoed, words)
  expectOneResult(stepped)
  expectAnswer(asked)
  for (const end of [echoed, stepped, asked]) expectAttempt(end, 1)
  return `${bench.proxy.withheld - before} replies withheld`
}

async function stepsOnce(bench: Bench): Promise<string> {
  await bench.worker()
  const failures = 2
  const end = await bench.ending(await bench.task('conform-step', 'go', { failures }))
  expectOneResult(end)
  expectAttempt(end, failures + 1)
  return `${failures + 1} attempts, one run`
}

async function waits(bench: Bench): Promise<string> {
  const worker = await bench.worker()
  const plain = await bench.task('conform-ask', 'go')
  const plainEnd = bench.ending(plain)
  await plain.answer(await bench.openWait(plain), { action: 'accept' })
  const end = await plainEnd
  expectAnswer(end)
  expectAttempt(end, 1)
  const orphan = await bench.task('conform-ask', 'go')
  const orphanEnd = bench.ending(orphan)
  const wait = await bench.openWait(orphan)
  await worker.kill()
  await bench.start()
  await orphan.answer(wait, { action: 'accept' })
  expectAnswer(await orphanEnd)
  return 'answered by the same worker, and by another one'
}

async function cancel(bench: Bench): Promise<string> {
  await bench.worker()
  const task = await bench.task('conform-echo', wordsOf(2_000).join(' '), { pauseMs: 50 })
  await bench.begun(task)
  await task.cancel()
  const from = performance.now()
  // No other turn runs.
  await bench.until('an end of the output', () => performance.now() - Math.max(from, bench.proxy.lastAppendAt) > 1_500)
  const lateMs = Math.max(0, Math.round(bench.proxy.lastAppendAt - from))
  if (!bench.isWithin(lateMs, 1_000)) throw new Error(`the worker still sent output ${lateMs} ms after the cancel`)
  expectText(await bench.ending(await bench.task('conform-echo', 'and on')), ['and', 'on'])
  return `the last append was ${lateMs} ms after it`
}

async function fenced(bench: Bench): Promise<string> {
  const frozen = await bench.worker()
  const words = wordsOf(100)
  const task = await bench.task('conform-echo', words.join(' '), { pauseMs: 50 })
  const ending = bench.ending(task)
  await bench.begun(task)
  frozen.signal('SIGSTOP')
  const other = await bench.start()
  await bench.until('the second attempt', async () => (await task.detail()).turns[0]?.attempt === 2, 60)
  frozen.signal('SIGCONT')
  const end = await ending
  expectText(end, words)
  expectAttempt(end, 2)
  await other.kill()
  // The frozen worker alone is left.
  expectText(await bench.ending(await bench.task('conform-echo', 'and on')), ['and', 'on'])
  return `frozen for longer than ${leaseMs} ms, it lost the turn and runs the next one`
}

async function drain(bench: Bench): Promise<string> {
  const leaving = await bench.worker()
  const words = wordsOf(60)
  const task = await bench.task('conform-echo', words.join(' '), { pauseMs: 50 })
  const ending = bench.ending(task)
  await bench.begun(task)
  await bench.start()
  leaving.signal('SIGTERM')
  await bench.until('the end of the worker', () => leaving.hasExited, 60)
  const { code, reason } = await leaving.exited
  if (code !== 0) throw new Error(`after SIGTERM the worker ended with ${reason}, not with code 0`)
  const end = await ending
  expectText(end, words)
  expectAttempt(end, 1)
  return 'the worker ended with code 0, and its turn took one attempt'
}
