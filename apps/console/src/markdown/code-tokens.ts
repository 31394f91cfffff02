/**
 * Code cut into comments, texts, numbers, keywords and the rest, for colours. It knows families of languages, not their grammars: what it does not
 * recognize keeps the colour of text. The tokens together are the code. Loaded when the first code block closes.
 */
export type CodeToken = { kind: 'comment' | 'text' | 'number' | 'keyword' | 'plain'; text: string }

type Family = { comment: string; keywords: ReadonlySet<string> }

const words = (list: string) => new Set(list.split(' '))

const cLike = words(
  'abstract any as async auto await bool boolean break case catch char class const constructor continue debugger declare default defer delete do double else enum export extends false final finally float fn for from func function get go goto if impl implements import in instanceof int interface is keyof let long loop match mod module mut namespace never new nil null number object of override package private protected pub public range readonly record return satisfies self set short static string struct super switch template this throw throws trait true try type typedef typeof undefined union unsafe unsigned use using val var void volatile where while with yield',
)
const scripts = words(
  'and as assert async await begin break case class continue def del do done elif else elsif end ensure except export False fi finally for from function global if import in is lambda local module next nil None nonlocal not or pass raise rescue return self set then True try unless until when while with yield',
)
const sql = words(
  'add all alter and as asc begin between by case check column commit constraint create cross default delete desc distinct drop else end exists foreign from full group having in index inner insert into is join key left like limit not null offset on or order outer primary references returning right rollback select set table then union unique update using values view when where with',
)

const slashes: Family = { comment: String.raw`\/\/[^\n]*|\/\*[\s\S]*?(?:\*\/|$)`, keywords: cLike }
const hashes: Family = { comment: String.raw`#[^\n]*`, keywords: scripts }
const dashes: Family = { comment: String.raw`--[^\n]*|\/\*[\s\S]*?(?:\*\/|$)`, keywords: sql }
const data: Family = { comment: String.raw`#[^\n]*`, keywords: words('true false null yes no') }

const families: Record<string, Family> = {
  ...Object.fromEntries(
    'c cc cpp c++ cs csharp css dart go java javascript js jsx json json5 jsonc kotlin kt php rs rust scala scss swift ts tsx typescript zig'
      .split(' ')
      .map(name => [name, slashes]),
  ),
  ...Object.fromEntries(
    'bash sh shell zsh fish py python rb ruby perl r elixir ex makefile dockerfile nix'.split(' ').map(name => [name, hashes]),
  ),
  ...Object.fromEntries('sql postgres postgresql mysql lua haskell hs'.split(' ').map(name => [name, dashes])),
  ...Object.fromEntries('yaml yml toml ini'.split(' ').map(name => [name, data])),
}

/** Null for a language that it does not know. */
export function codeTokens(code: string, language: string): CodeToken[] | null {
  const family = families[language.toLowerCase()]
  if (!family) return null
  const text = [String.raw`"(?:[^"\\\n]|\\[\s\S])*"?`, String.raw`'(?:[^'\\\n]|\\[\s\S])*'?`, '`(?:[^`\\\\]|\\\\[\\s\\S])*`?'].join('|')
  const pattern = new RegExp(`(${family.comment})|(${text})|(\\b\\d[\\w.]*)|([A-Za-z_$][\\w$]*)`, 'g')
  const tokens: CodeToken[] = []
  let at = 0
  for (const found of code.matchAll(pattern)) {
    const [whole, comment, quoted, number, word] = found
    const isKeyword = word !== undefined && (family.keywords.has(word) || (family === dashes && family.keywords.has(word.toLowerCase())))
    const kind =
      comment !== undefined ? 'comment' : quoted !== undefined ? 'text' : number !== undefined ? 'number' : isKeyword ? 'keyword' : null
    if (kind === null) continue
    if (found.index > at) tokens.push({ kind: 'plain', text: code.slice(at, found.index) })
    tokens.push({ kind, text: whole })
    at = found.index + whole.length
  }
  if (at < code.length) tokens.push({ kind: 'plain', text: code.slice(at) })
  return tokens
}
