/** What the model thought on its way. Open while it thinks, folded when it is done, unless the reader wants it otherwise. */
import type { ContentOf, Message } from '@rivulet/client'
import { useState } from 'react'
import { ChevronIcon } from '../../shell/elements/icons.tsx'
import { duration } from '../../shell/human-units.ts'
import { PlainText } from './plain-text.tsx'

export function ReasoningFold({ message, content }: { message: Message; content: ContentOf<'reasoning'> }) {
  const isThinking = message.status === 'streaming'
  const [choice, setChoice] = useState<boolean | null>(null)
  const isOpen = choice ?? isThinking
  const text = [...content.summary, ...content.content].filter(Boolean).join('\n\n')
  const took = message.finishedAt ? Date.parse(message.finishedAt) - Date.parse(message.createdAt) : 0
  return (
    <div className="text-[13px] text-soft">
      <button
        type="button"
        aria-expanded={isOpen}
        onClick={() => setChoice(!isOpen)}
        className="-ml-1 inline-flex items-center gap-0.5 rounded py-0.5 pr-2 hover:text-ink"
      >
        <span className={`transition-transform ${isOpen ? 'rotate-90' : ''}`}>
          <ChevronIcon />
        </span>
        <span className={isThinking ? 'breathing' : ''}>{isThinking ? 'Thinking …' : `Thought for ${duration(took)}`}</span>
      </button>
      {isOpen && <PlainText text={text} className="mt-1 ml-[7px] border-l-2 border-line pl-3" isGrowing={isThinking} />}
    </div>
  )
}
