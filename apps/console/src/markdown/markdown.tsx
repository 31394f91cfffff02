/** Markdown as it grows. Only the block that is being written is parsed again, and HTML in it is text. */
import { memo, useRef } from 'react'
import { type Block, type Blocks, growBlocks } from './blocks.ts'
import { CodePiece } from './code-piece.tsx'
import { Tokens, tokensOf } from './tokens.tsx'
import { usePageWindow } from './use-page-window.ts'

export const Markdown = memo(({ text, isGrowing = false }: { text: string; isGrowing?: boolean }) => {
  const grown = useRef<Blocks | null>(null)
  grown.current = growBlocks(grown.current, text)
  const { pages, rest, tail } = grown.current
  const near = nearFrom(pages)
  return (
    <div className={`prose ${isGrowing ? 'growing' : ''}`}>
      {pages.map((page, place) => (
        <Page key={page[0]?.at} blocks={page} isNear={place >= near} />
      ))}
      <div className="prose-page">
        {rest.map(block => (
          <MarkdownBlock key={block.at} block={block} />
        ))}
        {tail.map(block => (
          <MarkdownBlock key={block.at} block={block} />
        ))}
      </div>
    </div>
  )
})

/** How many pages at the end are drawn at once, because the reader of a text begins there: enough for a screen. */
const nearPages = 4
const nearLength = 16_000

function nearFrom(pages: Blocks['pages']): number {
  let place = pages.length
  for (let length = 0; place > 0 && place > pages.length - nearPages && length < nearLength; place -= 1)
    length += pages[place - 1]?.reduce((sum, { text }) => sum + text.length, 0) ?? 0
  return place
}

/** @param isNear counts when it is first drawn: a page that grows old is a gap only when it is far from the screen */
const Page = memo(
  ({ blocks, isNear }: { blocks: readonly Block[]; isNear: boolean }) => {
    const { ref, gapPx } = usePageWindow(isNear)
    if (gapPx !== null) return <div ref={ref} style={{ height: gapPx }} />
    return (
      <div ref={ref} className="prose-page">
        {blocks.map(block => (
          <MarkdownBlock key={block.at} block={block} />
        ))}
      </div>
    )
  },
  (before, after) => before.blocks === after.blocks,
)

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
