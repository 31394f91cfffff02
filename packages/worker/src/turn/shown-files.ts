/** Gives a model the bytes of the pictures and PDFs that a history refers to; the newest first, because there is a limit. */
import type { HistoryMessage } from '@rivulet/agent'

type ReadableFiles = { read(id: string): Promise<{ bytes(): Promise<Uint8Array> }> }

/** Of all together: providers take requests of 32 MB, and base64 adds a third. */
const maxShownBytes = 20 * 1024 * 1024

export async function withFileBytes<T extends HistoryMessage>(history: readonly T[], files: ReadableFiles): Promise<T[]> {
  const shown: T[] = []
  let left = maxShownBytes
  for (const message of [...history].reverse()) {
    const { content } = message
    const isShowable = content.type === 'media' && /^(image\/(png|jpe?g|gif|webp)|application\/pdf)\b/i.test(content.mimeType)
    if (!isShowable || content.file === undefined || (content.size ?? 0) > left) {
      shown.push(message)
      continue
    }
    const { file, ...rest } = content
    const bytes = await (await files.read(file)).bytes()
    left -= bytes.length
    shown.push({ ...message, content: { ...rest, data: Buffer.from(bytes).toString('base64') } })
  }
  return shown.reverse()
}
