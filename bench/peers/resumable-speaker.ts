/** resumable-stream, where the agent runs: it makes the streams, keeps what was said, and publishes it to whoever has asked. */
import { ReadableStream } from 'node:stream/web'
import { createResumableStreamContext } from 'resumable-stream'
import { answerQuestions } from '../child.ts'
import { createGate, type Gate } from '../gate.ts'
import { eventOf, type Plan, speak } from '../speech.ts'

const context = createResumableStreamContext({ waitUntil: null })
let speaking: Gate = createGate()
let ending: Gate = createGate()
let saidAll: Promise<void>[] = []

answerQuestions({
  async prepare({ plan, streams }: { plan: Plan; streams: string[] }) {
    speaking = createGate()
    ending = createGate()
    saidAll = []
    await Promise.all(streams.map((stream, task) => create(plan, stream, task)))
  },
  async speak() {
    speaking.open()
    await Promise.all(saidAll)
  },
  end: () => ending.open(),
})
process.on('SIGTERM', () => process.exit(0))

async function create(plan: Plan, stream: string, task: number): Promise<void> {
  const { opened: said, open: sayAll } = createGate()
  const [begin, end] = [speaking.opened, ending.opened]
  await context.createNewResumableStream(stream, () => ReadableStream.from(frames()) as globalThis.ReadableStream<string>)
  saidAll.push(said)

  async function* frames(): AsyncGenerator<string, void, void> {
    await begin
    for await (const { number, text } of speak(plan, task)) {
      yield `id: ${number}\nevent: message.delta\ndata: ${eventOf(stream, number, text)}\n\n`
    }
    sayAll()
    await end
  }
}
