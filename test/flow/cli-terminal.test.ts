/** The command line in a pseudo-terminal: what its user sees. */
import { setTimeout as sleep } from 'node:timers/promises'
import type { Task } from '@rivulet/protocol'
import { type AgentDefinition, defineAgent, delta, full, start, toolRequest, toolResponse } from '@rivulet/worker'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { repeat, rest, type Step, say, full as scriptedFull } from '../support/agents/scripts.ts'
import { createGate } from '../support/gate.ts'
import { startOwnWorker } from '../support/platform/own-worker.ts'
import { type Platform, startPlatform } from '../support/platform/platform.ts'
import { loadPty, openTerminal, type TerminalOptions, type TestTerminal } from '../support/terminal.ts'
import { until } from '../support/until.ts'

const esc = '\u001b'
const ctrlC = '\u0003'
const ctrlD = '\u0004'
const arrowUp = `${esc}[A`
const pty = await loadPty()

let platform: Platform

beforeAll(async () => {
  if (pty) platform = await startPlatform()
})
afterAll(() => platform?.close())

describe.skipIf(!pty)('in a terminal (skipped where node-pty has no native part)', () => {
  test('run streams word by word, in color, with a line at the end that says how it went', async () => {
    const words = ['one ', 'two ', 'three ', 'four'].map(word => ({ word, ...createGate() }))
    const agent = defineAgent('wordy', async function* () {
      yield full(0, { type: 'reasoning', summary: [], content: ['let me think'] })
      for (const { word, opened } of words) {
        yield delta(1, word)
        await opened
      }
    })
    await inTerminal(agent, async terminal => {
      // The next word comes when this one is on the screen, so they come in pieces of their own.
      for (const { word, open } of words) {
        await terminal.untilShows(word.trim())
        open()
      }
      expect(await terminal.exited).toBe(0)
      expect(terminal.output()).toContain(`${esc}[2mlet me think${esc}[22m`)
      expect(terminal.output()).toContain(`${esc}[2mcompleted in`)
      expect(plain(terminal.output())).toContain('one two three four\n')
    })
  })

  test('a tool that runs has a spinner, and its duration when it is done', async () => {
    const { open, opened } = createGate()
    const agent = defineAgent('searching', async function* () {
      yield full(0, toolRequest('c', 'search', { q: 'x' }))
      yield start(1, toolResponse('c', 'search', null))
      await opened
      yield full(1, toolResponse('c', 'search', 'found'))
      yield delta(2, 'done')
    })
    await inTerminal(agent, async terminal => {
      await terminal.untilShows(/[⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏]\S* \S*search [\d.]+ m?s/)
      await until('it spins', () => new Set(terminal.output().match(/[⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏]/g)).size > 3)
      open()
      expect(await terminal.exited).toBe(0)
      expect(terminal.output()).toMatch(/✓ search [\d.]+ m?s/)
      // Each frame takes the place of the one before it.
      expect(plain(terminal.output())).toMatch(/→ search {"q":"x"}\n✓ search [\d.]+ m?s\ndone\n/)
    })
  })

  test('a line typed while a turn streams is an input: the turn takes it, or it runs next', async () => {
    const { open, opened } = createGate()
    const agent = defineAgent('steered', async function* () {
      yield delta(0, 'begun')
      await opened
      yield delta(0, ' and ended')
    })
    await inTerminal(agent, async terminal => {
      await terminal.untilShows('begun')
      terminal.type('one more thing\r')
      await terminal.untilShows('› waits as turn 2')
      open()
      expect(await terminal.exited).toBe(0)
      expect(plain(terminal.output()).match(/and ended/g)).toHaveLength(2)
    })
  })

  test('run asks the person for the fields of a form, and for a yes or no', async () => {
    await withTerminal(['run', 'clerk', 'a refund', '--url', platform.url], async terminal => {
      for (const [question, line] of [
        ['? Order to refund', ''],
        ['The number of the order: ', 'A-7'],
        ['In euros: ', '42'],
        ['(damaged, late, other), optional: ', ''],
        ['send it? [y/n] ', 'y'],
        ['? Refund 42.00 € for order A-7?', ''],
      ] as const) {
        await terminal.untilShows(question)
        if (!question.startsWith('?')) terminal.type(`${line}\r`)
      }
      await terminal.untilShows(/A-7\?[\s\S]*\[y\/n\]/)
      terminal.type('y\r')
      await terminal.untilShows('Refunded 42.00 € for order A-7.')
      expect(await terminal.exited).toBe(0)
    })
  })

  test('Ctrl-C cancels the task: 130', async () => {
    await inTerminal([say(0, 'begun'), rest(60_000)], async (terminal, find) => {
      await terminal.untilShows('begun')
      terminal.type(ctrlC)
      await terminal.untilShows('canceling')
      expect(await terminal.exited).toBe(130)
      const { task } = await platform.client.waitForEnd((await find()).id)
      expect(task.status).toBe('canceled')
      expect(await platform.client.messages(task.id)).toMatchObject([{ status: 'aborted', content: { text: 'begun' } }])
    })
  })

  test('a second Ctrl-C exits at once, also if the server does not respond to the first', async () => {
    await inTerminal([repeat(600, say(0, 'still here '), rest(100))], async (terminal, find) => {
      await terminal.untilShows('still here')
      const { id } = await find()
      const [api] = platform.apis
      api?.freeze()
      try {
        terminal.type(ctrlC)
        await terminal.untilShows('canceling')
        // A signal too soon after the first counts as the same.
        await until('it leaves', () => {
          terminal.type(ctrlC)
          return Promise.race([terminal.exited.then(() => true), sleep(100, false)])
        })
        expect(await terminal.exited).toBe(130)
      } finally {
        api?.wake()
      }
      await platform.client.cancel(id)
    })
  })

  test('chat is a conversation: each line is a turn, Ctrl-D leaves, and --name shows it again', async () => {
    const args = ['chat', 'echo', '--name', `a chat ${Math.random()}`, '--url', platform.url]
    await withTerminal(args, async terminal => {
      await terminal.untilShows('› ')
      terminal.type('hello\r')
      await terminal.untilShows(/completed in/)
      terminal.type('again\r')
      await terminal.untilShows(/completed in[\s\S]*completed in[\s\S]*› /)
      terminal.type(`${arrowUp}${arrowUp}\r`)
      await terminal.untilShows(/completed in[\s\S]*completed in[\s\S]*completed in[\s\S]*› /)
      terminal.type(ctrlD)
      expect(await terminal.exited).toBe(0)
      expect(plain(terminal.output())).toMatch(/hello\ncompleted in [^\n]*\n[\s\S]*again\ncompleted in [^\n]*\n[\s\S]*hello\ncompleted/)
      expect(terminal.output()).not.toContain('left out')
    })
    await withTerminal(args, async terminal => {
      await terminal.untilShows(/› hello[\s\S]*› again[\s\S]*› hello[\s\S]*› /)
      terminal.type(ctrlC)
      expect(await terminal.exited).toBe(130)
    })
  })

  test('Ctrl-C in a chat stops the turn, and the conversation goes on', async () => {
    const params = JSON.stringify({ steps: [say(0, 'begun'), rest(60_000)] })
    await withTerminal(['chat', 'scripted', '--params', params, '--url', platform.url], async terminal => {
      await terminal.untilShows('› ')
      terminal.type('go\r')
      await terminal.untilShows('begun')
      terminal.type(ctrlC)
      await terminal.untilShows(/canceled in[\s\S]*› /)
      terminal.type(ctrlD)
      expect(await terminal.exited).toBe(0)
    })
  })

  test('what an agent says cannot steer the terminal', async () => {
    await inTerminal([say(0, `${esc}]0;owned\u0007${esc}[2Jsafe`)], async terminal => {
      expect(await terminal.exited).toBe(0)
      expect(terminal.output()).toContain('safe')
      expect(terminal.output()).not.toMatch(/owned|\[2J/)
    })
  })

  test('NO_COLOR is heard', async () => {
    await inTerminal(
      [scriptedFull(0, { type: 'reasoning', summary: [], content: ['think'] }), say(1, 'done')],
      async terminal => {
        expect(await terminal.exited).toBe(0)
        expect(plain(terminal.output())).toContain('think\ndone\ncompleted in')
        // Lines are still erased, but nothing is colored.
        expect(terminal.output().replaceAll(`${esc}[2K`, '')).not.toContain(esc)
      },
      { env: { NO_COLOR: '1' } },
    )
  })

  test.each([3, 20])('in %i columns no status line wraps', async columns => {
    const { open, opened } = createGate()
    const response = (content: string | null) => toolResponse('c', '検索 of everything that is there', content)
    const agent = defineAgent(`narrow-${columns}`, async function* () {
      yield full(0, toolRequest('c', 'search', {}))
      yield start(1, response(null))
      await sleep(700)
      await opened
      yield full(1, response(''))
    })
    await inTerminal(
      agent,
      async terminal => {
        if (columns > 3) await terminal.untilShows(/[⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏]/)
        open()
        expect(await terminal.exited).toBe(0)
        const frames = terminal.output().match(/[⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏][^\r\n]*/g) ?? []
        expect(frames.length > 0).toBe(columns > 3)
        for (const frame of frames) expect(columnsOf(plain(frame))).toBeLessThan(columns)
      },
      { columns },
    )
  })
})

/** `rivulet run` of an agent of the test, or of a script. */
async function inTerminal(
  what: AgentDefinition | Step[],
  use: (terminal: TestTerminal, find: () => Promise<Task>) => Promise<void>,
  options: TerminalOptions = {},
): Promise<void> {
  if (!pty) return
  const name = `in a terminal ${Math.random()}`
  if (!Array.isArray(what)) await startOwnWorker(platform, [what])
  const run = Array.isArray(what) ? ['scripted', '--params', JSON.stringify({ steps: what })] : [what.name]
  const args = ['run', ...run, '--name', name, '--url', platform.url]
  const find = () => until('the task is there', () => findTask(name))
  await withTerminal(args, terminal => use(terminal, find), options)
}

async function withTerminal(args: string[], use: (terminal: TestTerminal) => Promise<void>, options: TerminalOptions = {}): Promise<void> {
  if (!pty) return
  const terminal = openTerminal(pty, args, options)
  try {
    await use(terminal)
  } finally {
    terminal.kill()
    await terminal.exited
  }
}

async function findTask(name: string): Promise<Task | undefined> {
  const { body } = await platform.client.get<{ data: Task[] }>(`/v1/tasks?name=${encodeURIComponent(name)}`)
  return body.data[0]
}

/** What is left on the screen: without colors, and without lines that were erased. */
function plain(output: string): string {
  const erased = `\r${esc}[2K`
  return output
    .split('\n')
    .map(line => line.slice(line.lastIndexOf(erased) + (line.includes(erased) ? erased.length : 0)))
    .map(line =>
      line
        .split(esc)
        .map((piece, at) => (at === 0 ? piece : piece.replace(/^\[[\d;]*m/, '')))
        .join(''),
    )
    .map(line => line.replace(/\r$/, ''))
    .join('\n')
}

/** Chinese letters take two. */
function columnsOf(text: string): number {
  return Array.from(text).reduce((sum, char) => sum + (char > '\u2fff' ? 2 : 1), 0)
}
