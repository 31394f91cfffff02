/** Code with colours, once it is whole. The page loads what cuts it when the first code block closes. */
import { createElement, Fragment, useEffect, useState } from 'react'
import type { CodeToken } from './code-tokens.ts'

/** Longer code stays plain, because each colour is an element. */
const maxLength = 20_000

export function ColoredCode({ code, language }: { code: string; language: string }) {
  const [tokens, setTokens] = useState<readonly CodeToken[] | null>(null)
  useEffect(() => {
    if (language === '' || code.length > maxLength) return
    let isHere = true
    import('./code-tokens.ts').then(
      ({ codeTokens }) => isHere && setTokens(codeTokens(code, language)),
      // Without colours it can be read, too.
      () => {},
    )
    return () => {
      isHere = false
    }
  }, [code, language])
  if (!tokens) return code
  return createElement(
    Fragment,
    null,
    ...tokens.map(({ kind, text }) => (kind === 'plain' ? text : createElement('span', { className: `code-${kind}` }, text))),
  )
}
