/** What the pages for people who write agents tell them to type, typed: the platform with their agents, a worker beside it, and every curl. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, inject, onTestFinished, test, vi } from 'vitest'
import { keyPrefix } from '../support/engines/database.ts'
import { freePort } from '../support/free-port.ts'
import { type RunningCommand, startCommand } from '../support/process/running-command.ts'
import { messagesIn, wordsIn } from './event-text.ts'
import { hasCurl, repliesOf, shownIn } from './shell.ts'

// Each command starts Node a few times, and the machine may be busy with other tests.
vi.setConfig({ testTimeout: 300_000 })

/** What is answered to the curls of a page, in order, and who the workers of its `npm run worker` are. */
const pages = {
  'docs/writing-agents.md': { says: [/^\*\*NOT SO LOUD\*\*$/], agents: ['generator'] },
  'examples/README.md': { says: [/confirmed in attempt 2\.$/, /^I counted: {"words":5}\.$/], agents: ['generator', 'by-hand'] },
}

describe.each(Object.entries(pages))('%s', (document, { says, agents }) => {
  const commands = shownIn(document)
  const [npmStart = '', ...others] = commands.filter(command => command.startsWith('npm start'))
  const [npmRunWorker = '', ...more] = commands.filter(command => command.startsWith('npm run worker'))
  const curls = commands.filter(command => command.startsWith('curl '))

  test.skipIf(!hasCurl)('does what it says (skipped where there is no curl)', async () => {
    expect([...others, ...more]).toEqual([])
    const { url, env } = await startPlatform(npmStart)
    const replies = await repliesOf(curls, url)
    expect(replies.map(wordsIn)).toEqual(says.map(words => expect.stringMatching(words)))
    for (const reply of replies) expect(messagesIn(reply).map(({ status }) => status)).not.toContain('streaming')

    const worker = start(npmRunWorker, { ...env, RIVULET_URL: url })
    await worker.says('worker is ready')
    expect(worker.output()).toContain(`"agents":${JSON.stringify(agents)}`)
  })
})

/** On the run's Redis, so that a second worker can be told where it is. */
async function startPlatform(command: string): Promise<{ url: string; env: Record<string, string> }> {
  const dataDir = mkdtempSync(join(tmpdir(), 'rivulet-writing-agents-'))
  onTestFinished(() => rmSync(dataDir, { recursive: true, force: true }))
  const port = await freePort()
  const env = { REDIS_URL: inject('redisUrl'), REDIS_PREFIX: keyPrefix().replace(/:$/, '') }
  const platform = start(command, { ...env, PORT: port, DATA_DIR: dataDir, DATABASE_URL: '' })
  await platform.says('Rivulet is ready')
  return { url: `http://127.0.0.1:${port}`, env }
}

function start(command: string, env: Record<string, string>): RunningCommand {
  const started = startCommand(command, env)
  onTestFinished(() => started.interrupt())
  return started
}
