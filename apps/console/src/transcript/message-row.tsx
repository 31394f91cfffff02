/** One message, whatever it holds. */
import type { ContentOf, Message } from '@rivulet/client'
import { lazy, memo, Suspense } from 'react'
import { JsonTree } from '../json/json-tree.tsx'
import { CodePiece } from '../markdown/code-piece.tsx'
import { CodeSource } from '../markdown/code-text.ts'
import { MediaView } from './contents/media-view.tsx'
import { PlainText } from './contents/plain-text.tsx'
import { ReasoningFold } from './contents/reasoning-fold.tsx'
import { ToolCard } from './contents/tool-card.tsx'
import { EndMark } from './end-mark.tsx'

/** Its parser is a tenth of the page, and not every task needs it. */
const Markdown = lazy(async () => ({ default: (await import('../markdown/markdown.tsx')).Markdown }))

export const MessageRow = memo(({ message }: { message: Message }) => {
  const { author } = message
  if (author === 'user')
    return (
      <article aria-label="You" className="ml-auto max-w-[85%] rounded-2xl rounded-br-md bg-accent-well px-4 py-2.5 text-[15px]">
        <Content message={message} />
      </article>
    )
  return (
    <article aria-label={author === 'system' ? 'System' : 'Agent'} className={author === 'system' ? 'text-soft italic' : ''}>
      <Content message={message} />
      <EndMark message={message} />
    </article>
  )
})

function Content({ message }: { message: Message }) {
  const { content, status } = message
  switch (content.type) {
    case 'text':
      return <TextView content={content} isGrowing={status === 'streaming'} />
    case 'reasoning':
      return <ReasoningFold message={message} content={content} />
    case 'data':
      return <DataTree content={content} />
    case 'media':
      return <MediaView content={content} isGrowing={status === 'streaming'} />
    case 'tool_request':
      return <ToolCard request={message} response={null} isOver />
    case 'tool_response':
      return <ToolCard request={null} response={message} isOver />
    default:
      return content satisfies never
  }
}

function TextView({ content: { text, format }, isGrowing }: { content: ContentOf<'text'>; isGrowing: boolean }) {
  if (format === 'markdown')
    return (
      <Suspense fallback={<PlainText text={text} className="text-[15px] leading-[1.65]" isGrowing={isGrowing} />}>
        <Markdown text={text} isGrowing={isGrowing} />
      </Suspense>
    )
  if (format === 'code')
    return (
      <CodeSource value={() => text}>
        <div className="prose">
          <CodePiece block={{ at: 0, text }} fence={{ at: 0, language: '', isFirst: true, isLast: true }} />
        </div>
      </CodeSource>
    )
  return <PlainText text={text} className="text-[15px] leading-[1.65]" isGrowing={isGrowing} />
}

function DataTree({ content: { data, raw } }: { content: ContentOf<'data'> }) {
  return (
    <div className="overflow-x-auto rounded-lg border border-line bg-panel p-3 font-mono text-[13px]">
      {raw === undefined ? <JsonTree value={data} /> : <PlainText text={raw} isGrowing />}
    </div>
  )
}
