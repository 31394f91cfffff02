/** The conditions of a change: `If-Match` and `If-None-Match` about the version of what it replaces. */
import { RivuletError } from '@rivulet/protocol'
import type { FastifyRequest } from 'fastify'

/** Whether a caller accepts a version; 0 is that of something that does not exist. */
type VersionCheck = (version: number) => boolean

export function etagOf(version: number): string {
  return `"${version}"`
}

/** Null without `If-Match`. It names the version by an entity tag, or any version by `*`. Weak tags match none (RFC 9110). */
export function ifMatch({ headers }: Pick<FastifyRequest, 'headers'>): VersionCheck | null {
  const given = headers['if-match']
  if (given === undefined) return null
  if (given.trim() === '*') return () => true
  const tags = given.split(',').map(tag => tag.trim())
  if (!tags.every(tag => /^(W\/)?"[\x21\x23-\x7e]*"$/.test(tag)))
    throw new RivuletError('bad_request', 'If-Match takes entity tags in double quotes, or *')
  return version => tags.includes(etagOf(version))
}

/** What both headers together accept of something that may not exist: `"0"` names that it does not, and `*` that it does. */
export function conditionsOf(request: Pick<FastifyRequest, 'headers'>): VersionCheck {
  const { 'if-match': match, 'if-none-match': none } = request.headers
  if (none !== undefined && none.trim() !== '*') throw new RivuletError('bad_request', 'If-None-Match of a change takes only *')
  const matches = ifMatch(request) ?? (() => true)
  return version => matches(version) && (version > 0 ? none === undefined : match?.trim() !== '*')
}
