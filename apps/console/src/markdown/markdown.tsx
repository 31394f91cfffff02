/** Markdown as it grows. Only the block that is being written is parsed again, and HTML in it is text. */
import { memo, useCallback, useDeferredValue, useRef, useState } from 'react'
import { type Block, type Blocks, growBlocks } from './blocks.ts'
import { CodePiece } from './code-piece.tsx'
import { CodeSource, codeIn } from './code-text.ts'
import { Tokens, tokensOf } from './tokens.tsx'

export const Markdown = memo(({ text, isGrowing = false }: { text: string; isGrowing?: boolean }) => {
  const grown = useRef<Blocks | null>(null)
  grown.current = growBlocks(grown.current, text)
  const { pages, rest, tail } = grown.current
  // All of a long text is in the page, but only its end at once: React draws the rest when the browser has time.
  const isWhole = useDeferredValue(true, false)
  const [near] = useState(() => pages.length - nearPages)
  const codeFrom = useCallback((at: number) => codeIn(grown.current, at), [])
  return (
    <CodeSource value={codeFrom}>
      <div className={`prose ${isGrowing ? 'growing' : ''}`}>
        {pages.map((page, place) => (
          <Page key={page[0]?.at} blocks={page} isDrawn={isWhole || place >= near} />
        ))}
        <div className="prose-page">
          {[...rest, ...tail].map(block => (
            <MarkdownBlock key={block.at} block={block} />
          ))}
        </div>
      </div>
    </CodeSource>
  )
})

/** How many pages at the end are drawn at once, because the reader of a text begins there: enough for a screen. */
const nearPages = 4

const Page = memo(({ blocks, isDrawn }: { blocks: readonly Block[]; isDrawn: boolean }) => (
  <div className="prose-page">{isDrawn && blocks.map(block => <MarkdownBlock key={block.at} block={block} />)}</div>
))

const MarkdownBlock = memo(
  ({ block }: { block: Block }) =>
    block.fence ? (
      <CodePiece block={block} fence={block.fence} />
    ) : (
      <div dir="auto">
        <Tokens tokens={tokensOf(block.text)} />
      </div>
    ),
  (before, after) => isSame(before.block, after.block),
)

/** A block in the tail is cut anew with each delta, and is often what it was. */
function isSame(a: Block, b: Block): boolean {
  return a === b || (a.at === b.at && a.text === b.text && a.fence?.isFirst === b.fence?.isFirst && a.fence?.isLast === b.fence?.isLast)
}
