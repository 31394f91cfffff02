/** The options of every command that calls a platform, and its client. */
import { networkInterfaces } from 'node:os'
import { createClient, type RivuletClient } from '@rivulet/client'
import { defaultUrl } from '@rivulet/runtime/environment'
import type { Command } from 'commander'
import { readDataDir } from './config.ts'
import type { Environment } from './context.ts'
import { UsageError } from './exit-code.ts'
import { findRunning } from './platform/running-note.ts'

export type Connection = { url: string; key?: string | undefined }

/** A person waits: enough tries for a hiccup, too few to hang on a platform that is not there. */
const maxRetries = 2

export function addConnectionOptions(command: Command): Command {
  return command
    .option('--url <url>', `the URL of Rivulet (default: RIVULET_URL, then the platform of this folder, then ${defaultUrl})`)
    .option('--key <key>', 'the API key (default: RIVULET_KEY)')
}

export function connectionOf(options: { url?: string; key?: string }, environment: Environment): Connection {
  const url = urlOf(options, environment)
  if (!URL.canParse(url) || !/^https?:$/.test(new URL(url).protocol))
    throw new UsageError('The URL of Rivulet must begin with http:// or https://')
  return { url, key: options.key ?? (environment.RIVULET_KEY || undefined) }
}

/** The first, if there are several. */
export function urlOf(options: { url?: string }, environment: Environment): string {
  const [first = ''] = (options.url ?? (environment.RIVULET_URL || urlInThisFolder(environment) || defaultUrl)).split(',')
  return first.trim().replace(/\/+$/, '')
}

/** Only an address of this machine, because a folder from elsewhere may bring a note along, and the user's key is sent to this URL. */
function urlInThisFolder(environment: Environment): string | null {
  const url = findRunning(readDataDir(environment))?.url
  if (!url || !URL.canParse(url)) return null
  const host = new URL(url).hostname.replace(/^\[|\]$/g, '')
  const isOwn =
    host === 'localhost' || Object.values(networkInterfaces()).some(addresses => addresses?.some(({ address }) => address === host))
  return isOwn ? url : null
}

export function connect(connection: Connection): RivuletClient {
  return createClient({ ...connection, maxRetries })
}
