/** What a piece of work writes to the standard output, as one text. The output does not reach the terminal. */
import { inspect } from 'node:util'
import { vi } from 'vitest'

export async function printedBy(work: () => Promise<unknown>): Promise<string> {
  const written = vi.spyOn(process.stdout, 'write').mockImplementation(() => true)
  const logged = vi.spyOn(console, 'log').mockImplementation(() => {})
  try {
    await work()
    return [...written.mock.calls, ...logged.mock.calls].flatMap(values => values.map(textOf)).join('')
  } finally {
    written.mockRestore()
    logged.mockRestore()
  }
}

function textOf(value: unknown): string {
  return typeof value === 'string' ? value : inspect(value, { depth: 10 })
}
