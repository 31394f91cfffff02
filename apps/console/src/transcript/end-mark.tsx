/** How a message ended, where that is worth a word. */
import type { Message } from '@rivulet/client'
import type { ReactNode } from 'react'

export function EndMark({ message: { status, error, stopReason } }: { message: Message }) {
  if (status === 'aborted') return <Mark look="text-soft">Stopped here; the text up to this point is kept.</Mark>
  if (status === 'failed') return <Mark look="text-bad">Broke off{error ? `: ${error.message}` : ''}</Mark>
  if (stopReason === 'length') return <Mark look="text-warn">Cut off: the model reached its limit.</Mark>
  if (stopReason === 'content_filter') return <Mark look="text-warn">Cut off by a content filter.</Mark>
  return null
}

function Mark({ look, children }: { look: string; children: ReactNode }) {
  return <p className={`mt-1.5 border-l-2 border-current pl-2 text-[13px] ${look}`}>{children}</p>
}
