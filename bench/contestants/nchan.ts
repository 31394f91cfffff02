/** nginx with nchan, a module in C, where both are installed: one worker process, channels in its memory, no Redis. */
import { type ChildProcess, spawn } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { existsSync, mkdirSync, writeFileSync } from 'node:fs'
import { delimiter, join } from 'node:path'
import { freePort } from '../../test/support/free-port.ts'
import { until } from '../../test/support/until.ts'
import { startChild } from '../child.ts'
import type { Absent, Contestant, Start, World } from '../contestant.ts'
import { requestFor } from '../crowd.ts'
import { familyOf } from '../measure/cpu.ts'
import type { Plan } from '../measure/speech.ts'

export const nchan: Start = { name: 'nginx nchan', start }

const modules = ['/usr/lib/nginx/modules', '/usr/lib64/nginx/modules', '/opt/homebrew/lib/nginx/modules', '/usr/local/lib/nginx/modules']

async function start({ folder }: World): Promise<Contestant | Absent> {
  const program = find((process.env.PATH ?? '').split(delimiter), 'nginx')
  const module = find(modules, 'ngx_nchan_module.so')
  if (!program || !module) return { name: nchan.name, because: 'no nginx with the nchan module is installed' }
  const home = join(folder, 'nginx')
  mkdirSync(home)
  const port = await freePort()
  const url = `http://127.0.0.1:${port}`
  writeFileSync(join(home, 'nginx.conf'), configuration(module, home, port))
  const nginx = spawn(program, ['-p', home, '-c', join(home, 'nginx.conf')], { stdio: 'ignore' })
  await until('nginx responds', () => responds(url))
  const speaker = await startChild('programs/nchan-speaker.ts')
  return {
    name: nchan.name,
    pids: { server: () => familyOf(nginx.pid ?? 0), speaker: () => [speaker.pid] },
    prepare,
    close: async () => void (await Promise.all([speaker.stop(), end(nginx)])),
  }

  async function prepare(plan: Plan) {
    const channels = Array.from({ length: plan.tasks }, () => randomUUID())
    const urls = channels.map(channel => `${url}/say/${channel}`)
    return {
      requests: channels.map(channel => requestFor(url, `/events/${channel}`)),
      speak: () => speaker.ask<void>('speak', { plan, urls }),
      clear: () => speaker.ask<void>('remove', urls),
    }
  }
}

function configuration(module: string, home: string, port: string): string {
  return `
    load_module ${module};
    daemon off;
    ${process.getuid?.() === 0 ? 'user root;' : ''}
    worker_processes 1;
    pid ${home}/nginx.pid;
    error_log /dev/null;
    events { worker_connections 12000; }
    http {
      access_log off;
      client_body_temp_path ${home}/body;
      proxy_temp_path ${home}/proxy;
      fastcgi_temp_path ${home}/fastcgi;
      uwsgi_temp_path ${home}/uwsgi;
      scgi_temp_path ${home}/scgi;
      keepalive_requests 100000000;
      nchan_shared_memory_size 512M;
      server {
        listen 127.0.0.1:${port} backlog=4096;
        tcp_nodelay on;
        location = / { return 204; }
        location ~ ^/say/(.+)$ {
          nchan_publisher;
          nchan_channel_id $1;
          nchan_message_buffer_length 10000;
          nchan_message_timeout 10m;
        }
        location ~ ^/events/(.+)$ {
          nchan_subscriber eventsource;
          nchan_channel_id $1;
          nchan_subscriber_first_message oldest;
        }
      }
    }`
}

function find(folders: readonly string[], file: string): string | null {
  return folders.map(folder => join(folder, file)).find(existsSync) ?? null
}

async function responds(url: string): Promise<boolean> {
  try {
    return (await fetch(url)).ok
  } catch {
    return false
  }
}

async function end(nginx: ChildProcess): Promise<void> {
  const exited = new Promise(resolve => (nginx.exitCode === null ? nginx.once('exit', resolve) : resolve(null)))
  nginx.kill('SIGTERM')
  await exited
}
