/** A piece of a code block. Long code comes in several, which look like one and are copied as one. */
import { useContext } from 'react'
import { CopyButton } from '../shell/elements/copy-button.tsx'
import type { Block } from './blocks.ts'
import { CodeSource, codeOf } from './code-text.ts'
import { ColoredCode } from './colored-code.tsx'

export function CodePiece({ block, fence }: { block: Block; fence: NonNullable<Block['fence']> }) {
  const codeFrom = useContext(CodeSource)
  const { at, language, isFirst, isLast } = fence
  const corners = `${isFirst ? 'mt-3 rounded-t-lg border-t' : ''} ${isLast ? 'mb-3 rounded-b-lg' : ''}`
  return (
    <div className={`border-x border-b border-line bg-well ${isLast ? '' : 'border-b-transparent'} ${corners}`}>
      {isFirst && (
        <div className="flex items-center justify-between pr-1.5 pl-4 text-xs text-faint">
          <span className="py-2 font-mono">{language || 'code'}</span>
          <CopyButton label="Copy code" text={() => codeFrom(at)} />
        </div>
      )}
      <pre className={`overflow-x-auto px-4 font-mono text-[13px] leading-relaxed ${isLast ? 'pb-3' : ''}`}>
        <code>
          {/* Code in several pieces stays plain, because a comment or a text may go on in the next one. */}
          {isFirst && isLast ? <ColoredCode code={codeOf(block)} language={language} /> : codeOf(block)}
        </code>
      </pre>
    </div>
  )
}
