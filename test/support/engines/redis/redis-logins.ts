/** The logins of Redis that docs/security.md prescribes, so that tests use them as a reader would. */
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { blocksOf } from '../../texts/fenced-blocks.ts'

export type RedisLogin = { name: string; password: string; rules: string }

/** Of the tests themselves, because the default user of the servers is off. */
export const admin = { username: 'admin', password: 'password-of-the-tests' }

/** A file for the servers, with the documented logins and that of the tests. */
export function writeAclFile(folder: string): string {
  const path = join(folder, 'users.acl')
  const users = documentedLogins().map(({ name, rules }) => `user ${name} ${rules}`)
  writeFileSync(path, [...users, `user ${admin.username} on >${admin.password} ~* &* +@all`, ''].join('\n'))
  return path
}

/** Of a server. */
export function documentedLogin(program: 'api' | 'worker' | 'replica' | 'sentinel'): RedisLogin {
  const login = documentedLogins().find(({ name }) => name === `rivulet-${program}`)
  if (!login) throw new Error(`docs/security.md has no login rivulet-${program}`)
  return login
}

/** @param prefix of the keys, instead of that of the document */
export function documentedLogins(prefix = 'rivulet'): RedisLogin[] {
  return allLogins()
    .filter(({ name }) => !isOfSentinels(name))
    .map(({ rules, ...login }) => ({ ...login, rules: rules.replace(/rivulet(?=:)/g, prefix) }))
}

/** Of the Sentinels, which know other commands than the servers. */
export function documentedSentinelLogin(): RedisLogin {
  const login = allLogins().find(({ name }) => isOfSentinels(name))
  if (!login) throw new Error('docs/security.md has no login of Sentinels')
  return login
}

function isOfSentinels(name: string): boolean {
  return name.startsWith('sentinel-')
}

function allLogins(): RedisLogin[] {
  const page = readFileSync(new URL('../../../../docs/security.md', import.meta.url), 'utf8')
  return blocksOf(page).flatMap(({ text }) =>
    Array.from(text.matchAll(/^user (\S+) (.*)$/gm), ([, name = '', rules = '']) => ({
      name,
      password: />(\S+)/.exec(rules)?.[1] ?? '',
      rules,
    })),
  )
}

/** What the server refused since it was started, out of the reply to `ACL LOG`. Redis 7.0 does not know SETINFO, by which clients introduce themselves. */
export function refusalsIn(log: unknown): string[] {
  return (log as unknown[]).map(entry => JSON.stringify(entry)).filter(entry => !entry.includes('client|setinfo'))
}
