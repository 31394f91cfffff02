/** Two harmless tools for the assistant: the clock, and a calculator. */
import { defineTool } from '@rivulet/agent'
import { z } from 'zod'
import { evaluate } from './arithmetic.ts'

export function createAssistantTools({ now = () => new Date() }: { now?: () => Date } = {}) {
  const currentTime = defineTool({
    name: 'current_time',
    description: 'The current date and time in a time zone',
    input: z.object({ timeZone: z.string().max(64).default('UTC').describe('IANA name, such as Europe/Paris') }),
    run: ({ timeZone }) => {
      const time = now()
      const words = new Intl.DateTimeFormat('en-GB', { dateStyle: 'full', timeStyle: 'short', timeZone }).format(time)
      return { timeZone, iso: time.toISOString(), words }
    },
  })

  const calculate = defineTool({
    name: 'calculate',
    description: 'Works out a sum of numbers with + - * / % ^ and brackets',
    input: z.object({ expression: z.string().max(200).describe('such as 2 * (3 + 4)') }),
    run: ({ expression }) => ({ expression, result: evaluate(expression) }),
  })

  return [currentTime, calculate]
}
