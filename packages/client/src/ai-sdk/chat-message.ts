/** Messages of the AI SDK as inputs of a turn, and as responses to what a turn asks. */
import type { Content, Json } from '@rivulet/protocol'
import type { UIMessage } from 'ai'

/** Where an answer of the chat stands: its task, and its turn. */
export type TurnPlace = { task: string; turn: number }

type ApprovalAnswer = { wait: string; action: 'accept' | 'decline'; comment?: string }

/** The fields of the parts that a page sends. */
type Part = {
  type: string
  text?: string
  url?: string
  mediaType?: string
  filename?: string
  data?: Json
  state?: string
  approval?: { id: string; approved?: boolean; reason?: string }
}

/** Null for a message of the user, and for one of another server. */
export function placeOf({ metadata }: Pick<UIMessage, 'metadata'>): TurnPlace | null {
  if (typeof metadata !== 'object' || metadata === null || !('task' in metadata) || !('turn' in metadata)) return null
  const { task, turn } = metadata
  return typeof task === 'string' && typeof turn === 'number' ? { task, turn } : null
}

/** Each text, file and data part is an input. */
export function inputOf(message: UIMessage): Content | Content[] {
  const contents = partsOf(message).flatMap(contentOf)
  const [only] = contents
  return contents.length === 1 && only ? only : contents
}

function contentOf({ type, text, url, mediaType, filename, data }: Part): Content[] {
  if (type === 'text' && text !== undefined) return [{ type: 'text', text, format: 'plain' }]
  if (type.startsWith('data-') && data !== undefined) return [{ type: 'data', data }]
  if (type !== 'file' || url === undefined) return []
  const [, bytes] = /^data:[^,]*;base64,(.*)$/.exec(url) ?? []
  const about = { mimeType: mediaType ?? 'application/octet-stream', ...(filename !== undefined && { name: filename }) }
  return [{ type: 'media', ...about, ...(bytes === undefined ? { url } : { data: bytes }) }]
}

/** What the page has decided about the calls of the last message. */
export function answersOf(message: UIMessage): ApprovalAnswer[] {
  return partsOf(message).flatMap(({ state, approval }): ApprovalAnswer[] => {
    if (message.role !== 'assistant' || state !== 'approval-responded' || !approval) return []
    const { id, approved, reason } = approval
    return [{ wait: id, action: approved ? 'accept' : 'decline', ...(reason !== undefined && reason !== '' && { comment: reason }) }]
  })
}

function partsOf({ parts }: UIMessage): readonly Part[] {
  return parts as readonly Part[]
}
