/** All faults of a request, each with the JSON pointer of its field. */
import type { z } from 'zod'
import type { ErrorDetail } from '../errors.ts'
import { pointerTo } from './json.ts'

type Issue = z.core.$ZodIssue

export function detailsOf(error: z.core.$ZodError): ErrorDetail[] {
  return error.issues.flatMap(issue => detailsOfIssue(issue, ''))
}

function detailsOfIssue(issue: Issue, above: string): ErrorDetail[] {
  const path = above + issue.path.map(key => pointerTo(String(key))).join('')
  if (issue.code === 'unrecognized_keys') return issue.keys.map(key => ({ path: path + pointerTo(key), reason: 'Unknown field' }))
  // Of a union's alternatives, report the one whose faults are nested, because that is the one the caller meant.
  const meant = issue.code === 'invalid_union' ? issue.errors.find(issues => issues.some(inner => inner.path.length > 0)) : undefined
  return meant ? meant.flatMap(inner => detailsOfIssue(inner, path)) : [{ path, reason: issue.message }]
}
