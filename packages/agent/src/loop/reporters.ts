/** Ready-made observers of a run: its text for a terminal, its usage, and its updates in batches. */
import { sumUsage, type Update, type Usage } from '@rivulet/protocol'
import type { Observer } from './observers.ts'

/** Writes the text as it is streamed, and the name of each tool on a line. `text => process.stdout.write(text)` shows a run in a terminal. */
export function textReporter(write: (text: string) => void): Observer {
  const open = new Set<number>()
  return { update }

  function update(given: Update): void {
    if (given.type === 'start' || given.type === 'full') begin(given)
    else if (given.type === 'delta' && given.delta.type === 'text') {
      write(given.delta.text)
      open.add(given.index)
    } else if (given.type === 'done' && open.delete(given.index)) write('\n')
  }

  function begin({ type, index, content }: Extract<Update, { type: 'start' | 'full' }>): void {
    // What was streamed has been written: a replacement is for readers that can erase.
    const isNew = !open.has(index)
    switch (content.type) {
      case 'text':
        if (isNew) write(content.text)
        if (type === 'start') open.add(index)
        else {
          open.delete(index)
          write('\n')
        }
        break
      case 'tool_request':
        if (isNew) write(`[${content.name}]\n`)
        break
      case 'reasoning':
      case 'tool_response':
      case 'data':
      case 'media':
        break
      default:
        content satisfies never
    }
  }
}

/** Sums the usage of the messages of a run, or of several. */
export function usageReporter(): Observer & { total(): Usage } {
  let total: Usage = {}
  return {
    message: ({ usage }) => {
      total = sumUsage([total, usage]) ?? total
    },
    total: () => total,
  }
}

export type BufferedReporter = Observer & Disposable & { flush(): void }

/** Passes updates on in batches: when `capacity` of them wait, by `flush()`, at the end of the run, and when it is disposed of. */
export function bufferedReporter(pass: (updates: Update[]) => void, { capacity = 100 }: { capacity?: number } = {}): BufferedReporter {
  let waiting: Update[] = []
  return { update, flush, end: flush, [Symbol.dispose]: flush }

  function update(given: Update): void {
    waiting.push(given)
    if (waiting.length >= capacity) flush()
  }

  function flush(): void {
    const batch = waiting
    waiting = []
    if (batch.length > 0) pass(batch)
  }
}
