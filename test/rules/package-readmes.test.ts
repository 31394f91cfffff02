/** The READMEs of the packages that users import list every option and every call that their types have. */
import { expect, test } from 'vitest'
import { filesUnder, readText } from './repository.ts'

const groups = [
  ['feed', 'feed.ts', 'FeedCalls'],
  ['files', 'files.ts', 'FileCalls'],
  ['task', 'waits.ts', 'TaskWaitCalls'],
  ['task', 'task/task-calls.ts', 'OwnTaskCalls'],
  ['task', 'task/task-handle.ts', 'TaskHandle'],
] as const

const nouns = ['keys', 'schedules', 'tasks', 'webhooks'] as const

/** Calls that the client offers under another name than the generated one. */
const renamed: Readonly<Record<string, string>> = {
  ...{ 'keys.audit': 'audit', 'keys.whoami': 'whoami', 'task.get': 'task.detail', 'task.cancelTask': 'task.cancel' },
  ...{ 'task.retryTurn': 'task.retry', 'task.getState': 'task.state.get', 'task.putState': 'task.state.put' },
}

test('the README of the worker lists every option of createWorker', () => {
  const [, table = ''] = /### Options of `createWorker`\n([\s\S]*?)\n#/.exec(readText('packages/worker/README.md')) ?? []
  const listed = Array.from(table.matchAll(/^\|([^|]*)\|/gm), ([, cell = '']) => Array.from(cell.matchAll(/`(\w+)`/g), ([, name]) => name))
  expect(listed.flat().sort()).toEqual(membersOf('packages/worker/src/worker.ts', 'WorkerOptions', /[?:]/).sort())
})

test.each(groups)('the README of the client lists every call of %s (%s)', (group, file, type) => {
  const readme = readText('packages/client/README.md')
  const calls = membersOf(`packages/client/src/${file}`, type, /\(/).map(name => `${group}.${name}(`)
  expect(calls).not.toEqual([])
  expect(calls.filter(call => !readme.includes(call))).toEqual([])
})

test.each(nouns)('the README of the client lists every generated call of %s', noun => {
  const [, block = ''] =
    new RegExp(`^  ${noun}: \\{\n((?: {4}\\w+: '.*\n)+)`, 'm').exec(readText('packages/client/src/generated/calls.ts')) ?? []
  const calls = Array.from(block.matchAll(/^ +(\w+):/gm), ([, name = '']) => `${noun.replace('tasks', 'task')}.${name}`)
  expect(calls).not.toEqual([])
  expect(calls.filter(call => !readText('packages/client/README.md').includes(`${renamed[call] ?? call}(`))).toEqual([])
})

test('the README of the command line lists every command and every option', () => {
  const readme = readText('apps/cli/README.md')
  const sources = filesUnder('apps/cli/src/commands').map(readText).join('\n')
  const commands = Array.from(sources.matchAll(/\.command\('([a-z]+)'\)/g), ([, name = '']) => name)
  const options = Array.from(sources.matchAll(/[oO]ption\(\s*'(--[a-z-]+)/g), ([, name = '']) => name)
  expect(commands.length).toBeGreaterThan(15)
  expect(commands.filter(name => !new RegExp(`^\\|[^|]*\`((keys|agents|limits) )?${name}\\b`, 'm').test(readme))).toEqual([])
  expect(options.filter(name => !readme.includes(`\`${name}`))).toEqual([])
})

/** The members on the first level of a type that is an object, if this follows their name. */
function membersOf(file: string, type: string, follows: RegExp): string[] {
  const [, body = ''] = new RegExp(`type ${type} = [^{]*\\{\n([\\s\\S]*?)\n\\}`).exec(readText(file)) ?? []
  return Array.from(body.matchAll(new RegExp(`^ {2}(\\w+)(?=${follows.source})`, 'gm')), ([, name = '']) => name)
}
