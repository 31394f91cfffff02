/** The agents' process of resumable-stream: it creates the streams, keeps their chunks, and publishes them to the readers that resume. */
import { ReadableStream } from 'node:stream/web'
import { createResumableStreamContext } from 'resumable-stream'
import { handleRequests } from '../child.ts'
import { createGate, type Gate } from '../measure/gate.ts'
import { eventOf, type Plan, speak } from '../measure/speech.ts'

const context = createResumableStreamContext({ waitUntil: null })
let speaking: Gate = createGate()
let ending: Gate = createGate()
let sentAll: Promise<void>[] = []

handleRequests({
  async prepare({ plan, streams }: { plan: Plan; streams: string[] }) {
    speaking = createGate()
    ending = createGate()
    sentAll = []
    await Promise.all(streams.map((stream, task) => create(plan, stream, task)))
  },
  async speak() {
    speaking.open()
    await Promise.all(sentAll)
  },
  end: () => ending.open(),
})
process.on('SIGTERM', () => process.exit(0))

async function create(plan: Plan, stream: string, task: number): Promise<void> {
  const { opened: sent, open: markSent } = createGate()
  const [begin, end] = [speaking.opened, ending.opened]
  await context.createNewResumableStream(stream, () => ReadableStream.from(frames()) as globalThis.ReadableStream<string>)
  sentAll.push(sent)

  async function* frames(): AsyncGenerator<string, void, void> {
    await begin
    for await (const { number, text } of speak(plan, task)) {
      yield `id: ${number}\nevent: message.delta\ndata: ${eventOf(stream, number, text)}\n\n`
    }
    markSent()
    await end
  }
}
