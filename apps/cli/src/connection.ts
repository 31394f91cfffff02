/** The options of every command that calls a platform, and its client. */
import { createClient, type RivuletClient } from '@rivulet/client'
import { defaultUrl } from '@rivulet/runtime/environment'
import type { Command } from 'commander'
import type { Environment } from './context.ts'
import { UsageError } from './exit-code.ts'

export type Connection = { url: string; key?: string | undefined }

/** A person waits: enough tries for a hiccup, too few to hang on a platform that is not there. */
const maxRetries = 2

export function addConnectionOptions(command: Command): Command {
  return command
    .option('--url <url>', `the URL of Rivulet (default: RIVULET_URL, then ${defaultUrl})`)
    .option('--key <key>', 'the API key (default: RIVULET_KEY)')
}

export function connectionOf(options: { url?: string; key?: string }, environment: Environment): Connection {
  const url = urlOf(options, environment)
  if (!URL.canParse(url) || !/^https?:$/.test(new URL(url).protocol))
    throw new UsageError('The URL of Rivulet must begin with http:// or https://')
  return { url, key: options.key ?? (environment.RIVULET_KEY || undefined) }
}

export function urlOf(options: { url?: string }, environment: Environment): string {
  return (options.url ?? (environment.RIVULET_URL || defaultUrl)).replace(/\/+$/, '')
}

export function connect(connection: Connection): RivuletClient {
  return createClient({ ...connection, maxRetries })
}
