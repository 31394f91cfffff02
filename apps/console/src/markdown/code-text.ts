/** The code of fences, without the lines that open and close them. */
import { createContext } from 'react'
import type { Block, Blocks } from './blocks.ts'

/** The whole code of the fence that begins at a place of the text: a fence that is long comes in several pieces. */
export const CodeSource = createContext<(at: number) => string>(() => '')

export function codeOf({ text, fence }: Block): string {
  const from = fence?.isFirst ? text.indexOf('\n') + 1 || text.length : 0
  const code = text.slice(from)
  return fence?.isLast ? code.replace(/\n? {0,3}(`{3,}|~{3,})[ \t]*\n?$/, '') : code
}

export function codeIn(blocks: Blocks | null, at: number): string {
  const all = blocks ? [...blocks.pages.flat(), ...blocks.rest, ...blocks.tail] : []
  return all
    .filter(({ fence }) => fence?.at === at)
    .map(codeOf)
    .join('')
}
