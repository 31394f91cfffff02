/**
 * Notes about Rivulet, each with its source page, so that the example agents can search and cite without a network. The search compares words
 * and is deliberately simple.
 */
export type Note = {
  id: string
  title: string
  /** A page of this repository. */
  source: string
  text: string
}

export const notes: readonly Note[] = [
  {
    id: 'log',
    title: 'One log per task',
    source: 'README.md',
    text: 'What an agent produces is appended, delta by delta, to the log of its task in Redis. Every entry has a cursor, and the cursor is the id of the event on the wire. A viewer who was cut off goes on exactly there.',
  },
  {
    id: 'commit',
    title: 'Commit, then announce',
    source: 'README.md',
    text: 'When a turn ends, the server folds the log and commits the messages to Postgres. Only then it announces the end. A viewer that sees the end of a turn can read the stored messages.',
  },
  {
    id: 'cancel',
    title: 'Cancel is a fence',
    source: 'docs/what-happens-when.md',
    text: 'A cancel ends every turn of its task that has not ended, also one whose handler hangs. What was said is kept as aborted. The signal of the handler fires, and nothing that it writes afterwards gets anywhere.',
  },
  {
    id: 'retry',
    title: 'Failed attempts',
    source: 'docs/what-happens-when.md',
    text: 'A turn whose handler throws is tried again, three times in all unless the task says otherwise. The text of the new attempt takes the place of the old one. An error that trying again cannot help ends the turn at once.',
  },
  {
    id: 'crash',
    title: 'A worker that dies',
    source: 'docs/what-happens-when.md',
    text: 'A worker holds its turn by a lease that it renews with heartbeats. When the worker dies, the lease ends and another worker makes the next attempt. A turn that kills three workers fails.',
  },
  {
    id: 'streaming',
    title: 'Three ways to stream',
    source: 'docs/writing-agents.md',
    text: 'An agent yields what it says, hands over a stream, or writes its messages by hand. All three give the same log and the same stored messages. A handler may mix the last two.',
  },
  {
    id: 'steps',
    title: 'Durable steps',
    source: 'docs/writing-agents.md',
    text: 'A step remembers its result for the turn. The next attempt does not run it again, but gets the same result and sends its messages whole. Use it for what is slow, costs money or changes the world.',
  },
  {
    id: 'viewers',
    title: 'Slow viewers',
    source: 'README.md',
    text: 'Each API process reads a log once for all its viewers. It writes to each socket as fast as that socket accepts data, so a slow viewer does not slow down the others. The API skips a viewer that falls too far behind ahead with a snapshot.',
  },
]

/** The notes that share most words with the query, best first; none where no word fits. */
export function findNotes(query: string, { limit = 3, page }: { limit?: number; page?: string | undefined } = {}): Note[] {
  const wanted = new Set(wordsOf(query))
  const own = page === undefined ? notes : notes.filter(({ source }) => source === page)
  const scored = own.map(note => ({ note, score: 2 * matches(note.title, wanted) + matches(note.text, wanted) }))
  return scored
    .filter(({ score }) => score > 0)
    .sort((a, b) => b.score - a.score)
    .slice(0, limit)
    .map(({ note }) => note)
}

export function sentencesOf(text: string): string[] {
  return text.split(/(?<=[.!?])\s+/)
}

function matches(text: string, wanted: ReadonlySet<string>): number {
  return new Set(wordsOf(text).filter(word => wanted.has(word))).size
}

const smallWords = new Set(
  'and the that what when which who how why with for from are was has have does did its not can you they this'.split(' '),
)

/** Words of three letters and more, without the endings that make one word look like two. */
function wordsOf(text: string): string[] {
  const words = text.toLowerCase().match(/[a-z]{3,}/g) ?? []
  return words.filter(word => !smallWords.has(word)).map(word => word.replace(/(ing|ed|es|s)$/, ''))
}
