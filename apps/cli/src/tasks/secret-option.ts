/** `--secret`: names of variables of the environment. A value on a command line could be read by every user of the machine. */
import { InvalidArgumentError } from 'commander'
import type { Environment } from '../context.ts'

export const secretOption = 'give the agent the value of this variable as a secret of the same name; may be given several times'

/** For an option that may be given several times. */
export function collect(value: string, before: readonly string[] = []): string[] {
  return [...before, value]
}

export function secretsOf(names: readonly string[] | undefined, environment: Environment): { secrets?: Record<string, string> } {
  if (!names) return {}
  const missing = names.find(name => !environment[name])
  if (missing !== undefined) throw new InvalidArgumentError(`The variable ${missing} of --secret is not set`)
  return { secrets: Object.fromEntries(names.map(name => [name, environment[name] ?? ''])) }
}
