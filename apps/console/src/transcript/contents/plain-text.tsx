/** Text as it was written, drawn piece by piece as it grows. */
import { memo, useRef } from 'react'
import { growPieces, type Pieces } from './text-pieces.ts'

export const PlainText = memo(({ text, className = '', isGrowing = false }: { text: string; className?: string; isGrowing?: boolean }) => {
  const grown = useRef<Pieces | null>(null)
  grown.current = growPieces(grown.current, text)
  const { whole, last } = grown.current
  return (
    <div dir="auto" className={`whitespace-pre-wrap [overflow-wrap:anywhere] ${className}`}>
      {whole.map(({ at, text }) => (
        <Part key={at} text={text} />
      ))}
      {/* No anchor for the browser: when a part is cut off, what is left begins further down, and what is being read stays where it is. */}
      <div className={`[overflow-anchor:none] ${isGrowing ? 'caret' : ''}`}>{last.text}</div>
    </div>
  )
})

const Part = memo(({ text }: { text: string }) => <div className="prose-page">{text}</div>)
