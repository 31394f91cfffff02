/** Durable Streams, where the agent runs: its client gathers what is appended while a request is on its way. */
import { DurableStream, IdempotentProducer } from '@durable-streams/client'
import { answerQuestions } from '../child.ts'
import { eventOf, type Plan, speak } from '../speech.ts'

const contentType = 'application/json'

answerQuestions({
  prepare: async (urls: string[]) => {
    for (const url of urls) await DurableStream.create({ url, contentType })
  },
  speak: ({ plan, urls }: { plan: Plan; urls: string[] }) => Promise.all(urls.map((url, task) => say(plan, url, task))),
  remove: async (urls: string[]) => {
    for (const url of urls) await DurableStream.delete({ url })
  },
})
process.on('SIGTERM', () => process.exit(0))

async function say(plan: Plan, url: string, task: number): Promise<void> {
  const producer = new IdempotentProducer(new DurableStream({ url, contentType }), 'bench', { autoClaim: true })
  for await (const { number, text } of speak(plan, task)) producer.append(eventOf(url, number, text))
  await producer.flush()
}
