/** Streams its text input, one word per delta. */
import { defineAgent, delta } from '@rivulet/worker'

export const echo = defineAgent(
  'echo',
  async function* (turn) {
    const said = turn.inputs.some(({ type }) => type === 'text') ? turn.text : JSON.stringify(turn.input)
    for (const word of wordsOf(said)) yield delta(0, word)
  },
  { description: 'Says its input back, a word at a time' },
)

/** Splits before each word but the first, in one pass. A pattern with leading blanks is quadratic on blanks: from each blank it scans all blanks behind it. */
function* wordsOf(text: string): Generator<string> {
  let [from, isFirst] = [0, true]
  for (const { index } of text.matchAll(/\S+/g)) {
    if (!isFirst) {
      yield text.slice(from, index)
      from = index
    }
    isFirst = false
  }
  if (from < text.length) yield text.slice(from)
}
