/**
 * A link that shows one task to a person without a key: a token that may only read is in its fragment, which browsers send to no server. It ends when
 * the token does.
 */
export type SharedLink = { token: string; until: string }

export function sharedLink(): SharedLink | null {
  const fields = new URLSearchParams(location.hash.slice(1))
  const [token, until] = [fields.get('token'), fields.get('until')]
  return token?.startsWith('rvt_') ? { token, until: until ?? '' } : null
}

export function addressOf(origin: string, path: string, { token, until }: SharedLink): string {
  return `${origin}${path}#${new URLSearchParams({ token, until })}`
}
