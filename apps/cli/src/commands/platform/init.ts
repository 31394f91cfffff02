/** `rivulet init <folder>`: a project with an agent, a test and a README, ready to start. From a checkout it needs no network. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import type { Command } from 'commander'
import type { Context, Environment } from '../../context.ts'
import { isCheckout } from '../../platform/programs.ts'
import { createProject } from '../../project/new-project.ts'
import { siblingTarballs } from '../../project/sibling-tarballs.ts'
import { toJsonLine } from '../../terminal/json-line.ts'

type InitOptions = { install: boolean; python?: boolean; json?: boolean }

export function addInitCommand(program: Command, context: Context): void {
  program
    .command('init')
    .description('create a project with an agent, a test and a README')
    .argument('<folder>', 'an empty or new folder')
    .option('--python', 'agents in Python')
    .option('--no-install', 'do not run npm install')
    .option('--json', 'print what was created as JSON')
    .action((folder: string, options: InitOptions) => init(context, folder, options))
}

async function init({ environment, out, err }: Context, folder: string, options: InitOptions): Promise<void> {
  const files = createProject(folder, options.python ? 'python' : 'typescript')
  if (options.install) {
    err.status(() => 'installing the packages')
    await installPackages(folder, environment)
    err.status(null)
  }
  if (options.json) return out.write(toJsonLine({ folder, files }))
  const steps = [`cd ${quoted(folder)}`, ...(options.install ? [] : ['npm install']), 'npm start', 'npm test']
  out.write(`${folder} has ${files.join(', ')}. Now:\n\n${steps.map(step => `  ${step}\n`).join('')}`)
}

/** As a shell takes it for one word. */
function quoted(path: string): string {
  return /^[\w./~-]+$/.test(path) ? path : `'${path.replaceAll("'", `'\\''`)}'`
}

async function installPackages(folder: string, environment: Environment): Promise<void> {
  const quiet = ['--no-audit', '--no-fund']
  // The packages of a checkout are links, and what they need is installed where they are.
  const linked = ['install', '--offline', '--ignore-scripts', ...quiet, '--install-links=false']
  const args = isCheckout ? linked : ['install', ...quiet, ...siblingTarballs(process.cwd())]
  // Started through npm itself, this has settings of that run in its environment.
  const own = Object.fromEntries(Object.entries(environment).filter(([name]) => !name.startsWith('npm_')))
  const npm = spawn('npm', args, { cwd: folder, env: own, stdio: ['ignore', 'ignore', 'pipe'] })
  let said = ''
  npm.stderr.on('data', (bytes: Buffer) => {
    said += bytes
  })
  const [code] = await once(npm, 'close')
  if (code !== 0) throw new Error(`The files were created, but npm install failed in ${folder}: ${said.trim().split('\n').at(-1) ?? code}`)
}
