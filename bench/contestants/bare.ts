/** The lower limits: prepared bytes written to sockets, and to Node's response objects. */
import { startChild } from '../child.ts'
import type { Contestant, Start } from '../contestant.ts'
import { requestFor } from '../crowd.ts'
import type { Plan } from '../measure/speech.ts'

export const bareSocket: Start = { name: 'bare socket.write', start: () => start('bare socket.write', 'socket') }
export const bareResponse: Start = { name: 'bare res.write', start: () => start('bare res.write', 'response') }

async function start(name: string, how: 'socket' | 'response'): Promise<Contestant> {
  const child = await startChild('programs/bare.ts', { args: [how] })
  const url = `http://127.0.0.1:${await child.ask<number>('port')}`
  return { name, pids: { server: () => [child.pid] }, prepare, close: child.stop }

  async function prepare(plan: Plan) {
    await child.ask('prepare', plan)
    return {
      requests: Array.from({ length: plan.tasks }, (_, task) => requestFor(url, `/${task}`)),
      speak: () => child.ask<void>('speak'),
      clear: () => child.ask<void>('prepare', { ...plan, tasks: 0 }),
    }
  }
}
