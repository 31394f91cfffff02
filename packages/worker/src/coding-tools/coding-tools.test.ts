import { execFile } from 'node:child_process'
import { constants } from 'node:fs'
import { mkdtemp, open, readFile, realpath, symlink, truncate, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { call, runAgent, scriptedModel, user } from '@rivulet/agent'
import { expect, onTestFinished, test, vi } from 'vitest'
import { type CodingToolsOptions, createCodingTools } from './coding-tools.ts'

test('a file is written with its folders, edited, read and used by a command', async () => {
  const results = await use(await newFolder(), [
    call('write', { path: 'a/sum.sh', content: 'echo $((1 + 1))\n' }),
    call('edit', { path: 'a/sum.sh', old: '1 + 1', new: '40 + 2' }),
    call('read', { path: 'a/sum.sh' }),
    call('bash', { command: 'sh a/sum.sh; echo err >&2; exit 3' }),
  ])
  expect(results.map(({ content }) => content)).toEqual([
    'wrote 16 characters to a/sum.sh',
    'edited a/sum.sh',
    'echo $((40 + 2))\n',
    { code: 3, output: expect.stringMatching(/^(42\nerr\n|err\n42\n)$/) },
  ])
})

test.each([
  ['missing', 'old', 0],
  ['twice', 'a', 2],
])('an edit of a text that is %s changes nothing, and says how often it is there', async (_, old, count) => {
  const folder = await newFolder()
  await writeFile(join(folder, 'f'), 'a a')
  const [result] = await use(folder, [call('edit', { path: 'f', old, new: 'b' })])
  expect(result).toMatchObject({ isError: true, content: expect.stringContaining(`${count} times`) })
  expect(await readFile(join(folder, 'f'), 'utf8')).toBe('a a')
})

test.each([
  ['../outside.txt', 'above the folder'],
  ['/etc/passwd', 'an absolute path'],
  ['link/passwd', 'a link that leads out'],
  ['link/new.txt', 'a new file behind such a link'],
  ['dangling', 'a link to a file outside that does not exist'],
  ['dangling/new.txt', 'a new file behind a link to a folder outside that does not exist'],
  ['twice', 'a link to such a link'],
])('no tool reaches %s: %s', async path => {
  const [folder, outside] = await Promise.all([newFolder(), newFolder()])
  await symlink('/etc', join(folder, 'link'))
  await symlink(join(outside, 'not-there'), join(folder, 'dangling'))
  await symlink('dangling', join(folder, 'twice'))
  const results = await use(folder, [
    call('read', { path }),
    call('write', { path, content: 'x' }),
    call('edit', { path, old: 'a', new: 'b' }),
  ])
  const refused = { isError: true, content: expect.stringContaining('outside the folder') }
  expect(results).toMatchObject([refused, refused, refused])
  await expect(realpath(join(outside, 'not-there'))).rejects.toThrow('ENOENT')
})

test('a link inside the folder is followed', async () => {
  const folder = await newFolder()
  await symlink('later', join(folder, 'link'))
  await use(folder, [call('write', { path: 'link', content: 'x' })])
  expect(await readFile(join(folder, 'later'), 'utf8')).toBe('x')
})

test.each(['no process has open', 'a process has open'])('no tool waits at a pipe that %s', async which => {
  const folder = await newFolder()
  const pipe = join(folder, 'pipe')
  await promisify(execFile)('mkfifo', [pipe])
  if (which === 'a process has open') {
    const file = await open(pipe, constants.O_RDWR | constants.O_NONBLOCK)
    onTestFinished(() => file.close())
  }
  const results = await use(folder, [
    call('read', { path: 'pipe' }),
    call('edit', { path: 'pipe', old: 'a', new: 'b' }),
    call('write', { path: 'pipe', content: 'x' }),
  ])
  const refused = { isError: true, content: expect.stringContaining('pipe is not a regular file') }
  expect(results).toMatchObject([refused, refused, refused])
})

test('a file of 4 MiB is read and edited, and a larger one is an error', async () => {
  const folder = await newFolder()
  const calls = [call('read', { path: 'f' }), call('edit', { path: 'f', old: 'end', new: 'END' })]
  await writeFile(join(folder, 'f'), `${'x'.repeat(4 * 1024 * 1024 - 3)}end`)
  expect(await use(folder, calls)).toMatchObject([{ isError: false }, { isError: false }])
  await truncate(join(folder, 'f'), 4 * 1024 * 1024 + 1)
  const refused = { isError: true, content: expect.stringContaining('f is larger than 4 MiB') }
  expect(await use(folder, calls)).toMatchObject([refused, refused])
})

test('a command has no variables of the worker', async () => {
  const [result] = await use(await newFolder(), [call('bash', { command: 'env | cut -d= -f1 | sort | tr "\\n" " "' })])
  expect(result?.content).toEqual({ code: 0, output: expect.stringMatching(/^(_ )?HOME PATH PWD (OLDPWD |SHLVL |_ )*$/) })
})

test('a long output is cut, and says how much is left out', async () => {
  const [result] = await use(await newFolder(), [call('bash', { command: 'head -c 40000 /dev/zero | tr "\\0" x' })])
  expect(result?.content).toMatchObject({ output: expect.stringMatching(/^x{30000}\n… 10000 more characters$/) })
})

test('what a command leaves in the background ends with it', async () => {
  const folder = await newFolder()
  const [result] = await use(folder, [call('bash', { command: 'sleep 1000 & echo $! > pid' })])
  expect(result?.content).toEqual({ code: 0, output: '' })
  const pid = Number(await readFile(join(folder, 'pid'), 'utf8'))
  await expect.poll(() => isAlive(pid)).toBe(false)
})

test('a command that exceeds its time is an error, and its processes end', async () => {
  const folder = await newFolder()
  const [result] = await use(folder, [call('bash', { command: 'sleep 1000 & echo $! > pid; wait' })], { timeoutMs: 3_000 })
  expect(result).toMatchObject({ isError: true, content: expect.stringContaining('longer than 3000 ms') })
  const pid = Number(await readFile(join(folder, 'pid'), 'utf8'))
  await expect.poll(() => isAlive(pid)).toBe(false)
})

test.each([
  ['ends', 'echo done', { isError: false, content: { code: 0, output: expect.stringContaining('done\n') } }],
  ['exceeds its time', 'sleep 1000', { isError: true, content: expect.stringContaining('longer than 5000 ms') }],
])('a command that %s closes the pipes of a process that left its group', async (_, last, expected) => {
  const folder = await newFolder()
  const leave = `setsid sh -c 'echo $$ > pid; while sleep 0.1; do echo x; done' & until [ -s pid ]; do sleep 0.1; done`
  const signals = vi.spyOn(process, 'kill')
  const [result] = await use(folder, [call('bash', { command: `echo $$ > group; ${leave}; ${last}` })], { timeoutMs: 5_000 })
  expect(result).toMatchObject(expected)
  const [group, pid] = await Promise.all(['group', 'pid'].map(async file => Number(await readFile(join(folder, file), 'utf8'))))
  await expect.poll(() => isAlive(pid ?? 0)).toBe(false)
  // Once only: when the shell is reaped, another process may get its id.
  expect(signals.mock.calls.filter(([to]) => to === -(group ?? 0))).toHaveLength(1)
  signals.mockRestore()
})

test('a command that cannot start because too many files are open is an error, and the worker goes on', async () => {
  const program = `
    import { openSync } from 'node:fs'
    import { runCommand } from ${JSON.stringify(new URL('run-command.ts', import.meta.url).href)}
    try { for (;;) openSync('/dev/null') } catch {}
    const options = { folder: '/', timeoutMs: 60_000, maxChars: 100, signal: new AbortController().signal }
    const error = await runCommand('true', options).catch(error => error)
    await new Promise(resolve => setImmediate(resolve))
    console.log('goes on after', error.code)
  `
  const node = `ulimit -n 256; exec "$0" --import tsx --input-type=module -e "$1"`
  const { stdout } = await promisify(execFile)('sh', ['-c', node, process.execPath, program])
  expect(stdout).toBe('goes on after EMFILE\n')
})

test('an abort of the run ends its command', async () => {
  const folder = await newFolder()
  const abort = new AbortController()
  const model = scriptedModel([[call('bash', { command: 'echo $$ > pid; sleep 1000' })], 'Done.'])
  const tools = Object.values(await createCodingTools(folder))
  const { result } = runAgent({ model, tools, messages: [user('go')], signal: abort.signal })
  await expect.poll(() => readFile(join(folder, 'pid'), 'utf8').catch(() => '')).toMatch(/\d+\n/)
  const pid = Number(await readFile(join(folder, 'pid'), 'utf8'))
  abort.abort()
  expect((await result).stopReason).toBe('aborted')
  await expect.poll(() => isAlive(pid)).toBe(false)
})

type Result = { content: unknown; isError: boolean }

/** The results of calls that a model makes one after the other. */
async function use(folder: string, calls: ReturnType<typeof call>[], options: CodingToolsOptions = {}): Promise<Result[]> {
  const tools = Object.values(await createCodingTools(folder, options))
  const { messages } = await runAgent({ model: scriptedModel([...calls.map(one => [one]), 'Done.']), tools, messages: [user('go')] }).result
  return messages.flatMap(({ content }) => (content.type === 'tool_response' ? [content] : []))
}

function newFolder(): Promise<string> {
  return mkdtemp(join(tmpdir(), 'coding-tools-'))
}

/** A process that has ended and was not waited for is no longer alive either, so its state is read. */
async function isAlive(pid: number): Promise<boolean> {
  try {
    process.kill(pid, 0)
    return !/^\d+ \(.*\) Z/.test(await readFile(`/proc/${pid}/stat`, 'utf8').catch(() => '0 () S'))
  } catch {
    return false
  }
}
