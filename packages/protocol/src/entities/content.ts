/**
 * The content types of a message.
 *
 * A new type begins with a schema here. The places that handle each type are closed switches and complete tables, so the compiler finds
 * them; CONTRIBUTING.md, *A new content type*, lists them, and those that the compiler does not find.
 */
import { z } from 'zod'
import type { Json } from '../values/json.ts'
import { jsonSchema } from '../values/json-schema.ts'
import { type File, fileIdSchema, fileNameSchema } from './file.ts'

const textContent = z.object({
  type: z.literal('text'),
  text: z.string(),
  format: z.enum(['plain', 'markdown', 'code']).default('plain'),
})

const reasoningContent = z.object({ type: z.literal('reasoning'), summary: z.array(z.string()), content: z.array(z.string()) })

/** Of a content whose value is in a file: the file, and the size of it in bytes. */
const stored = { file: fileIdSchema.optional(), size: z.int().min(0).optional() }

/** With `file`, `data` is a preview of the value in that file. */
const dataContent = z.object({ type: z.literal('data'), data: jsonSchema, raw: z.string().optional(), ...stored })

const toolRequestContent = z.object({
  type: z.literal('tool_request'),
  callId: z.string(),
  name: z.string(),
  arguments: jsonSchema,
  raw: z.string().optional(),
})

const toolResponseContent = z.object({
  type: z.literal('tool_response'),
  callId: z.string(),
  name: z.string(),
  content: jsonSchema,
  isError: z.boolean(),
  ...stored,
})

const mediaContent = z.object({
  type: z.literal('media'),
  mimeType: z.string(),
  data: z.base64().optional(),
  url: z.string().optional(),
  file: fileIdSchema.optional(),
  name: fileNameSchema.optional(),
  size: z.int().min(0).optional(),
})

export const contentSchema = z.discriminatedUnion('type', [
  textContent,
  reasoningContent,
  dataContent,
  toolRequestContent,
  toolResponseContent,
  mediaContent,
])

/** Contents in requests: an unknown field is an error, and media has exactly one source. */
export const strictContentSchema = z.discriminatedUnion('type', [
  textContent.strict(),
  reasoningContent.strict(),
  dataContent.omit({ raw: true, file: true, size: true }).strict(),
  toolRequestContent.omit({ raw: true }).strict(),
  toolResponseContent.omit({ file: true, size: true }).strict(),
  mediaContent
    .strict()
    .refine(
      ({ data, url, file }) => [data, url, file].filter(source => source !== undefined).length === 1,
      'Set exactly one of data, url and file',
    ),
])

export type Content = z.output<typeof contentSchema>
export type ContentType = Content['type']
export type ContentOf<T extends ContentType> = Extract<Content, { type: T }>

export function text(value = '', format: ContentOf<'text'>['format'] = 'plain'): ContentOf<'text'> {
  return { type: 'text', text: value, format }
}

export function reasoning(summary: string[] = [], parts: string[] = []): ContentOf<'reasoning'> {
  return { type: 'reasoning', summary, content: parts }
}

export function data(value: Json = null): ContentOf<'data'> {
  return { type: 'data', data: value }
}

export function toolRequest(callId: string, name: string, args: Json = {}): ContentOf<'tool_request'> {
  return { type: 'tool_request', callId, name, arguments: args }
}

export function toolResponse(callId: string, name: string, value: Json = null, isError = false): ContentOf<'tool_response'> {
  return { type: 'tool_response', callId, name, content: value, isError }
}

export function media(mimeType: string, base64 = ''): ContentOf<'media'> {
  return { type: 'media', mimeType, data: base64 }
}

/** The reference to a file that is stored. */
export function fileContent({ id, name, mimeType, size }: Pick<File, 'id' | 'name' | 'mimeType' | 'size'>): ContentOf<'media'> {
  return { type: 'media', mimeType, file: id, ...(name !== undefined && { name }), size }
}

/** The content of a message whose first update is a delta instead of a start. */
export function emptyContent(type: ContentType): Content {
  switch (type) {
    case 'text':
      return text()
    case 'reasoning':
      return reasoning()
    case 'data':
      return data()
    case 'tool_request':
      return toolRequest('', '')
    case 'tool_response':
      return toolResponse('', '')
    case 'media':
      return media('application/octet-stream')
    default:
      return type satisfies never
  }
}
