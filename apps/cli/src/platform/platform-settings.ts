/** The settings that a platform on one's own machine chooses for its API, where the environment has none. A variable that is set always wins. */
import { isLoopback } from '@rivulet/runtime/environment'
import type { Environment } from '../context.ts'

type PlatformSettings = { RIVULET_EXAMPLE_AGENTS: string; WEBHOOK_ALLOW_PRIVATE: string }

export function hasKeys(environment: Environment): boolean {
  return Boolean(environment.RIVULET_KEY || environment.KEY_PEPPER)
}

/**
 * Webhooks may call this machine only if no other machine can create one. With keys one can, also if `HOST` is this machine: a proxy in front of
 * the API passes the requests of others on.
 */
export function platformSettings(environment: Environment, host: string): PlatformSettings {
  const isPrivate = isLoopback(host) && !hasKeys(environment) && !environment.RIVULET_WORKER_KEY
  return {
    // Files with agents come first.
    RIVULET_EXAMPLE_AGENTS: environment.RIVULET_EXAMPLE_AGENTS || 'on',
    WEBHOOK_ALLOW_PRIVATE: environment.WEBHOOK_ALLOW_PRIVATE || (isPrivate ? 'on' : 'off'),
  }
}
