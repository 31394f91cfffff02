/**
 * What the parser found, as elements. Nothing here sets HTML: tags in the text are shown as they were written, addresses that could run
 * something are no links, and images are links too, because loading one would tell its server which reader opened the page.
 */
import { Lexer, type Tokens as T, type Token } from 'marked'
import { createElement, Fragment, memo, type ReactNode } from 'react'
import { decodeEntities } from './entities.ts'

export function tokensOf(markdown: string): Token[] {
  return new Lexer({ gfm: true }).lex(markdown)
}

export const Tokens = memo(({ tokens }: { tokens: readonly Token[] }) => inOrder(tokens))

/** Tokens have no identity but their place: they are made anew with their block. */
function inOrder(tokens: readonly Token[] | undefined): ReactNode {
  return createElement(Fragment, null, ...(tokens ?? []).map(token => elementOf(token as Known)))
}

type Known =
  | T.Space
  | T.Code
  | T.Heading
  | T.Table
  | T.Hr
  | T.Blockquote
  | T.List
  | T.ListItem
  | T.Paragraph
  | T.HTML
  | T.Tag
  | T.Def
  | T.Text
  | T.Escape
  | T.Link
  | T.Image
  | T.Strong
  | T.Em
  | T.Codespan
  | T.Br
  | T.Del
  | T.Checkbox

function elementOf(token: Known): ReactNode {
  switch (token.type) {
    case 'space':
    case 'def':
      return null
    case 'paragraph':
      return <p>{inOrder(token.tokens)}</p>
    case 'text':
      return 'tokens' in token && token.tokens ? inOrder(token.tokens) : decodeEntities(token.text)
    case 'escape':
      return token.text
    case 'heading':
      return createElement(`h${token.depth}`, null, inOrder(token.tokens))
    case 'strong':
      return <strong>{inOrder(token.tokens)}</strong>
    case 'em':
      return <em>{inOrder(token.tokens)}</em>
    case 'del':
      return <del>{inOrder(token.tokens)}</del>
    case 'codespan':
      return <code className="codespan">{token.text}</code>
    case 'br':
      return <br />
    case 'hr':
      return <hr />
    case 'blockquote':
      return <blockquote>{inOrder(token.tokens)}</blockquote>
    case 'list':
      return listOf(token)
    case 'list_item':
      return <li>{inOrder(token.tokens)}</li>
    case 'checkbox':
      return <input type="checkbox" checked={token.checked} disabled aria-label={token.checked ? 'done' : 'to do'} className="mr-1.5" />
    case 'code':
      return (
        <pre className="my-3 overflow-x-auto rounded-lg border border-line bg-well px-4 py-3 font-mono text-[13px]">
          <code>{token.text}</code>
        </pre>
      )
    case 'table':
      return tableOf(token)
    case 'link':
      return linkOf(token.href, inOrder(token.tokens))
    case 'image':
      return linkOf(token.href, `🖼 ${decodeEntities(token.text) || token.href}`)
    case 'html':
      return 'block' in token && token.block ? <p className="whitespace-pre-wrap">{token.raw.trimEnd()}</p> : token.raw
    default:
      return (token as Token).raw
  }
}

function listOf({ ordered, start, items }: T.List): ReactNode {
  const rows = items.map(elementOf)
  return ordered ? createElement('ol', { start: typeof start === 'number' ? start : 1 }, ...rows) : createElement('ul', null, ...rows)
}

function tableOf({ header, rows }: T.Table): ReactNode {
  const row = (cells: T.TableCell[], tag: 'th' | 'td') =>
    createElement(
      'tr',
      null,
      ...cells.map(({ tokens, align }) => createElement(tag, align && { className: aligned[align] }, inOrder(tokens))),
    )
  return (
    <table>
      <thead>{row(header, 'th')}</thead>
      {createElement('tbody', null, ...rows.map(cells => row(cells, 'td')))}
    </table>
  )
}

const aligned = { left: 'text-left', center: 'text-center', right: 'text-right' }

function linkOf(address: string, children: ReactNode): ReactNode {
  if (!/^(https?:|mailto:)/i.test(address)) return <span title={address}>{children}</span>
  return (
    <a href={address} target="_blank" rel="noopener noreferrer">
      {children}
    </a>
  )
}
