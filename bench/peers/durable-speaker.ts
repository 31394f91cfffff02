/** The agents' process of Durable Streams: its client batches appends while a request is in flight. */
import { DurableStream, IdempotentProducer } from '@durable-streams/client'
import { handleRequests } from '../child.ts'
import { eventOf, type Plan, speak } from '../measure/speech.ts'

const contentType = 'application/json'

handleRequests({
  prepare: async (urls: string[]) => {
    for (const url of urls) await DurableStream.create({ url, contentType })
  },
  speak: ({ plan, urls }: { plan: Plan; urls: string[] }) => Promise.all(urls.map((url, task) => send(plan, url, task))),
  remove: async (urls: string[]) => {
    for (const url of urls) await DurableStream.delete({ url })
  },
})
process.on('SIGTERM', () => process.exit(0))

async function send(plan: Plan, url: string, task: number): Promise<void> {
  const producer = new IdempotentProducer(new DurableStream({ url, contentType }), 'bench', { autoClaim: true })
  for await (const { number, text } of speak(plan, task)) producer.append(eventOf(url, number, text))
  await producer.flush()
}
