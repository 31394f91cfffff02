/**
 * Every variable that our programs read, from their own schemas: what docs/operations.md and .env.example say about them is made of this.
 *
 * A variable that several programs read means the same to all of them: it has one description, or this fails.
 */
import { variables as ofWorker } from '@rivulet/agents/config'
import { variables as ofApi } from '@rivulet/api/config'
import { variables as ofCommandLine } from 'rivulet/config'
import { z } from 'zod'
import { code, tableOf } from './marked-block.ts'

const programs = { API: ofApi, worker: ofWorker, CLI: ofCommandLine }

type Program = keyof typeof programs

type Variable = {
  name: string
  readBy: Program[]
  meaning: string
  /** As it would be written; null without a default. */
  byDefault: string | null
  /** Of a number: what is refused beyond, where that is not plain. */
  bounds: string
  /** For those that have to be set. */
  example: string | null
  /** Not for people to set. */
  isInternal: boolean
}

type Property = { description?: string; default?: unknown; examples?: unknown[]; isInternal?: boolean; minimum?: number; maximum?: number }

export function allVariables(): Variable[] {
  const found = new Map<string, Variable>()
  for (const program of Object.keys(programs) as Program[]) {
    for (const [name, property] of propertiesOf(program)) {
      const variable = describe(name, program, property)
      const known = found.get(name)
      if (known && known.meaning !== variable.meaning)
        throw new Error(`${name} is described in two ways: ${known.meaning}; ${variable.meaning}`)
      found.set(name, known ? { ...known, readBy: [...known.readBy, program] } : variable)
    }
  }
  return [...found.values()]
}

/** `.env.example`: what has to be set is set, everything else is there with its default, commented out. */
export function exampleOf(variables: readonly Variable[]): string {
  const shown = variables.filter(({ isInternal }) => !isInternal)
  const entries = shown.map(({ name, meaning, byDefault, example, readBy }) => {
    const setting = example === null ? `# ${name}=${byDefault ?? ''}` : `${name}=${example}`
    return `# ${plain(meaning)} (${readBy.join(', ')})\n${setting}\n`
  })
  return `${exampleHead}\n${entries.join('\n')}\n${exampleTail}`
}

const exampleHead = `# Every variable of Rivulet. Copy this file to .env, and keep that to yourself: .env is for secrets, and git ignores it.
# Docker Compose reads .env by itself, and needs the secrets that sh scripts/make-env.sh adds to it; in a shell: set -a; . ./.env; set +a
# Leave out REDIS_URL and DATABASE_URL for npm start with engines of its own.
# What is commented out has the value that is shown, or none. Written by npm run generate; docs/operations.md says more.
`

const exampleTail = `# only for docker-compose.yml: the passwords of Redis, of the role that owns the tables, and of the API's role
# REDIS_PASSWORD=
# POSTGRES_PASSWORD=
# POSTGRES_API_PASSWORD=
`

/** docker-compose.yml passes on from .env what it does not decide itself, above this line, for the API and for the worker. */
export function withPassedVariables(page: string, variables: readonly Variable[]): string {
  const line = '      # As in .env, if they are there. Written by npm run generate.\n'
  return page.replaceAll(RegExp(`^  (api|worker):\n(?:    .*\n)*?${line}(?:      \\w+:\n)*`, 'gm'), (service, name) => {
    const above = service.slice(0, service.indexOf(line))
    const isPassed = ({ name: variable, readBy, isInternal }: Variable) =>
      readBy.includes(name === 'api' ? 'API' : 'worker') &&
      !isInternal &&
      !onlyOutside.includes(variable) &&
      !above.includes(`      ${variable}:`)
    return `${above}${line}${variables
      .filter(isPassed)
      .map(variable => `      ${variable.name}:\n`)
      .join('')}`
  })
}

/** The container of a worker has no files of this machine. */
const onlyOutside = ['AGENT_FILES']

export function variablesTable(variables: readonly Variable[]): string {
  const rows = variables.map(({ name, readBy, meaning, byDefault, example, bounds }) => {
    const shown = byDefault === null ? (example === null ? '' : 'needed') : byDefault === '' ? '' : code(byDefault)
    return [code(name), readBy.join(', '), meaning, [shown, bounds].filter(Boolean).join('; ')]
  })
  return tableOf(['variable', 'read by', 'meaning', 'default'], rows)
}

function propertiesOf(program: Program): [string, Property][] {
  const { properties = {} } = z.toJSONSchema(programs[program], { io: 'input' })
  return Object.entries(properties) as [string, Property][]
}

function describe(
  name: string,
  program: Program,
  { description = '', default: byDefault, examples, isInternal = false, minimum = 0, maximum = Number.MAX_SAFE_INTEGER }: Property,
): Variable {
  if (description === '') throw new Error(`${name} of ${program} has no description`)
  return {
    ...{ name, readBy: [program], meaning: description, isInternal },
    bounds: [...(minimum > 1 ? [`at least ${minimum}`] : []), ...(maximum < Number.MAX_SAFE_INTEGER ? [`at most ${maximum}`] : [])].join(
      ', ',
    ),
    byDefault: byDefault === undefined ? null : String(byDefault),
    example: examples?.[0] === undefined ? null : String(examples[0]),
  }
}

function plain(markdown: string): string {
  return markdown.replaceAll('`', '')
}
