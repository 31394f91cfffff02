/**
 * A Compose file as `docker compose` reads it: merged, its variables filled in, and checked.
 *
 * The check is ours and knows only what our file uses: what it does not know is refused, and what is unsafe, which the specification allows.
 */
import { parse } from 'yaml'
import { z } from 'zod'

export type Variables = Record<string, string | undefined>

const name = z.string().regex(/^[a-zA-Z0-9._-]+$/)
const duration = z.string().regex(/^(\d+(us|ms|s|m|h))+$/)
const count = z.int().min(0)
const commandLine = z.union([z.string().min(1), z.array(z.string()).min(1)])
/** The address of the host is not optional here: without one, a port is open to other machines. */
const port = z.string().regex(/^\d+(\.\d+){3}:\d+:\d+$/)

const healthcheck = z.union([
  z.strictObject({ disable: z.literal(true) }),
  z.strictObject({
    test: z.tuple([z.enum(['CMD', 'CMD-SHELL'])], z.string()),
    interval: duration.optional(),
    timeout: duration.optional(),
    start_period: duration.optional(),
    start_interval: duration.optional(),
    retries: count.optional(),
  }),
])

const service = z.strictObject({
  image: z.string().min(1),
  build: z.strictObject({ context: z.string(), target: name.optional(), dockerfile: z.string().optional() }).optional(),
  pull_policy: z.enum(['always', 'never', 'missing', 'if_not_present', 'build']).optional(),
  command: commandLine.optional(),
  environment: z.record(z.string().regex(/^[A-Z][A-Z0-9_]*$/), z.string().nullable()).default({}),
  ports: z.array(port).default([]),
  /** A volume of Docker's, or a file of this checkout that the container only reads. */
  volumes: z.array(z.string().regex(/^([\w-]+:\/\S+|\.\/[\w./-]+:\/[\w./-]+:ro)$/)).default([]),
  depends_on: z
    .record(name, z.strictObject({ condition: z.enum(['service_started', 'service_healthy', 'service_completed_successfully']) }))
    .default({}),
  healthcheck,
  user: name.optional(),
  restart: z.union([z.enum(['no', 'always', 'unless-stopped']), z.string().regex(/^on-failure(:\d+)?$/)]),
  stop_grace_period: duration.optional(),
  read_only: z.boolean().optional(),
  cap_drop: z.array(z.string()).optional(),
  security_opt: z.array(z.string()).optional(),
})

const file = z
  .strictObject({ services: z.record(name, service), volumes: z.record(name, z.null()).default({}) })
  .superRefine(({ services, volumes }, context) => {
    const fault = (message: string) => context.addIssue({ code: 'custom', message })
    for (const [user, { depends_on, volumes: mounts }] of Object.entries(services)) {
      for (const [needed, { condition }] of Object.entries(depends_on)) {
        if (!services[needed]) fault(`${user} depends on ${needed}, which is no service`)
        else if (condition === 'service_healthy' && 'disable' in services[needed].healthcheck) fault(`${needed} is never healthy`)
      }
      const sources = mounts.map(mount => mount.split(':')[0] ?? '').filter(source => !source.startsWith('./'))
      for (const source of sources) if (!(source in volumes)) fault(`${user} mounts ${source}, which is no volume`)
    }
  })

export type ComposeFile = z.output<typeof file>

export type Service = z.output<typeof service>

/** Throws for what does not fit. */
export function readComposeFile(text: string, variables: Variables = {}): ComposeFile {
  const tree: Record<string, unknown> = parse(text, { merge: true })
  const known = Object.fromEntries(Object.entries(tree).filter(([key]) => !key.startsWith('x-')))
  return file.parse(fillIn(known, variables))
}

/** What a service's processes find in their environment. A variable without a value is handed on, if it is there. */
export function environmentOf({ environment }: Service, variables: Variables = {}): Record<string, string> {
  const entries = Object.entries(environment).map(([key, value]) => [key, value ?? variables[key]] as const)
  return Object.fromEntries(entries.flatMap(([key, value]) => (value === undefined ? [] : [[key, value]])))
}

/** The variables of an env file, as Compose reads the lines that we write: without quotes. */
export function readEnvFile(text: string): Record<string, string> {
  return Object.fromEntries(Array.from(text.matchAll(/^([A-Z][A-Z0-9_]*)=(.+)$/gm), ([, name = '', value = '']) => [name, value]))
}

function fillIn(value: unknown, variables: Variables): unknown {
  if (typeof value === 'string') return interpolate(value, variables)
  if (Array.isArray(value)) return value.map(item => fillIn(item, variables))
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, fillIn(item, variables)]))
}

/**
 * Only `$$`, which is a `$`, `${A:-otherwise}` and `${A:?what to do}`, which no version of Compose reads differently: some look at what stands in a branch that is not
 * taken. What is needed and missing is an error.
 */
function interpolate(text: string, variables: Variables): string {
  const filled = text.replaceAll(/\$\{(\w+):([-?])([^${}]*)\}/g, (_, variable: string, how: string, words: string) => {
    if (how === '?' && !variables[variable]) throw new Error(`${variable} is missing: ${words}`)
    return variables[variable] || words
  })
  if (filled.replaceAll('$$', '').includes('$')) throw new Error(`This is not understood: ${text}`)
  return filled.replaceAll('$$', '$')
}
