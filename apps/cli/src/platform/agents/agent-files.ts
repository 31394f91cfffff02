/** The files with agents on a command line. */
import { existsSync } from 'node:fs'
import { InvalidArgumentError } from 'commander'

/** For Commander: one file more. */
export function collectFile(file: string, earlier: string[] = []): string[] {
  if (!existsSync(file)) throw new InvalidArgumentError(`No such file: ${file}`)
  return [...earlier, file]
}
