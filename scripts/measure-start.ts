/**
 * `npm run measure:start`: how long `npm start` takes on a warm machine, from the command to each of its steps and to the first word of an answer.
 *
 * The first start builds the bundle and creates the databases, so it is not counted. The engines are the embedded ones with `--embedded`,
 * otherwise those that `npm start` finds.
 */
import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, existsSync, mkdirSync, mkdtempSync, rmSync, symlinkSync } from 'node:fs'
import { cpus, loadavg, tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { createClient } from '@rivulet/client'

const rounds = 5
const port = '4197'
const root = fileURLToPath(new URL('../', import.meta.url))
const isEmbedded = process.argv.includes('--embedded')

/** What the output says at the end of each step. */
const steps = {
  'npm has run the command': /bin\/rivulet\.mjs start/,
  'Redis runs': /^redis /,
  'Postgres runs': /^postgres /,
  'the API listens': /api is listening/,
  'the worker is ready': /worker is ready/,
  '“Rivulet is ready”': /Rivulet is ready/,
}
const firstWord = 'the first word of an answer'

type Times = Record<string, number>

const dataDir = mkdtempSync(join(tmpdir(), 'rivulet-measure-'))
// Postgres runs as another user when this is root.
chmodSync(dataDir, 0o755)
const load = loadavg()[0]?.toFixed(1)
const runs: Times[] = []
try {
  await measure()
  for (let round = 0; round < rounds; round += 1) runs.push(await measure())
} finally {
  rmSync(dataDir, { recursive: true, force: true })
}
console.log(
  `${process.platform}, ${cpus().length} × ${cpus()[0]?.model}; Node ${process.versions.node}; load average when it began: ${load}`,
)
console.log(`| from \`npm start\` until | fastest of ${rounds}, s | median, s |\n| --- | ---: | ---: |`)
for (const step of [...Object.keys(steps), firstWord]) {
  const times = runs.map(times => times[step] ?? Number.NaN).sort((a, b) => a - b)
  console.log(`| ${step} | ${seconds(times[0])} | ${seconds(times[Math.floor(rounds / 2)])} |`)
}

async function measure(): Promise<Times> {
  const startedAt = performance.now()
  const times: Times = {}
  const env = {
    ...withoutNpm(process.env),
    PORT: port,
    DATA_DIR: dataDir,
    REDIS_URL: '',
    DATABASE_URL: '',
    ...(isEmbedded && { PATH: pathWithoutServers() }),
  }
  const npm = spawn('npm', ['start'], { cwd: root, env, detached: true, stdio: ['ignore', 'pipe', 'inherit'] })
  const output = createInterface({ input: npm.stdout })
  const ended = once(npm, 'close')
  try {
    await new Promise<void>((resolve, reject) => {
      output.on('line', line => {
        for (const [step, sign] of Object.entries(steps)) if (sign.test(line)) times[step] ??= performance.now() - startedAt
        if ('“Rivulet is ready”' in times) resolve()
      })
      void ended.then(([code]) => reject(new Error(`npm start ended with ${code}`)))
    })
    const task = await createClient({ url: `http://127.0.0.1:${port}` }).tasks.create({ agent: 'echo', input: 'hello' })
    for await (const { type } of task.events()) if (type === 'message.delta') times[firstWord] ??= performance.now() - startedAt
  } finally {
    process.kill(-(npm.pid ?? 0), 'SIGINT')
    await ended
  }
  return times
}

/** A folder with nothing but what npm needs. */
function pathWithoutServers(): string {
  const folder = join(dataDir, 'bin')
  mkdirSync(folder, { recursive: true })
  for (const name of ['node', 'npm', 'sh'])
    if (!existsSync(join(folder, name))) symlinkSync(execFileSync('which', [name], { encoding: 'utf8' }).trim(), join(folder, name))
  return folder
}

/** npm, which runs this, would hand its settings on. */
function withoutNpm(environment: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  return Object.fromEntries(Object.entries(environment).filter(([name]) => !/^npm_/i.test(name)))
}

function seconds(ms: number | undefined): string {
  return ((ms ?? Number.NaN) / 1_000).toFixed(2)
}
