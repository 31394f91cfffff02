/**
 * The lower limit: tasks run in the process that holds the sockets, with nothing in between. `socket` writes prepared chunks directly to the
 * socket, and `response` lets Node's response object do the chunking.
 */
import { once } from 'node:events'
import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'
import { handleRequests } from '../child.ts'
import { eventOf, type Plan, speak } from '../measure/speech.ts'

type Task = { frames: Buffer[]; viewers: Set<Viewer> }
type Viewer = { to: ServerResponse | Socket }

const isBareSocket = process.argv[2] === 'socket'
let tasks: Task[] = []
let plan: Plan = { tasks: 0, deltas: 0, perSecond: null }

const server = createServer((request, response) => {
  const task = tasks[Number(request.url?.slice(1))]
  if (!task) return void response.writeHead(404).end()
  response.writeHead(200, { 'content-type': 'text/event-stream', 'cache-control': 'no-cache' })
  response.flushHeaders()
  response.socket?.setNoDelay(true)
  const viewer: Viewer = { to: isBareSocket && response.socket ? response.socket : response }
  if (task.frames.length > 0) void write(viewer, ready(Buffer.concat(task.frames)))
  task.viewers.add(viewer)
  response.on('close', () => task.viewers.delete(viewer))
})
server.listen(0, '127.0.0.1')
await once(server, 'listening')

handleRequests({
  port: () => (server.address() as AddressInfo).port,
  prepare(wanted: Plan) {
    plan = wanted
    tasks = Array.from({ length: plan.tasks }, () => ({ frames: [], viewers: new Set() }))
  },
  speak: () => Promise.all(tasks.map(send)),
})

async function send(task: Task, number: number): Promise<void> {
  for await (const { number: at, text } of speak(plan, number)) {
    const frame = Buffer.from(`id: 1-${at}\nevent: message.delta\ndata: ${eventOf(taskId, at, text)}\n\n`)
    task.frames.push(frame)
    const bytes = ready(frame)
    for (const viewer of task.viewers) if (!write(viewer, bytes)) await once(viewer.to, 'drain')
  }
}

const taskId = '0198c0de-0000-7000-8000-000000000001'
const lineEnd = Buffer.from('\r\n')

function ready(plain: Buffer): Buffer {
  return isBareSocket ? Buffer.concat([Buffer.from(`${plain.length.toString(16)}\r\n`), plain, lineEnd]) : plain
}

function write({ to }: Viewer, bytes: Buffer): boolean {
  return to.write(bytes)
}
