/** What a provider can be shown of a media content: a picture, a PDF, or a line of text that says what is not shown. */
import type { ContentOf } from '@rivulet/protocol'

type MediaForm = { as: 'image' | 'pdf'; url?: string; data: string; mimeType: string; name: string } | { as: 'text'; text: string }

/** Of the kinds that OpenAI and Anthropic both read. */
const images = /^image\/(png|jpe?g|gif|webp)$/

export function mediaForm({ mimeType, url, data, name = 'file', size, file }: ContentOf<'media'>): MediaForm {
  const [type = ''] = mimeType.toLowerCase().split(';')
  // Without bytes and without an address there is only its name: `turn.run` reads the bytes of files that a model can be shown.
  const isThere = url !== undefined || (data !== undefined && file === undefined)
  const as = images.test(type) ? 'image' : type === 'application/pdf' ? 'pdf' : null
  if (!isThere || !as)
    return { as: 'text', text: `[A file that is not shown: ${name}, ${mimeType}${size === undefined ? '' : `, ${size} bytes`}]` }
  return { as, ...(url !== undefined && { url }), data: data ?? '', mimeType: type, name }
}
