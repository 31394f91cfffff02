import { type ContentOf, media } from '@rivulet/protocol'
import { expect, test } from 'vitest'
import { anthropicBody } from './anthropic/anthropic-messages.ts'
import { openaiBody } from './openai/openai-messages.ts'

const pdf: ContentOf<'media'> = { ...media('application/pdf', 'JVBERg=='), name: 'report.pdf' }
const unread: ContentOf<'media'> = {
  type: 'media',
  mimeType: 'application/zip',
  file: '0198a3a0-0000-7000-8000-000000000000',
  name: 'a.zip',
  size: 7,
}
const note = { type: 'text', text: '[A file that is not shown: a.zip, application/zip, 7 bytes]' }

test('pictures and PDFs have the forms of OpenAI and Anthropic, and other files are named', () => {
  const messages = [media('image/png', 'aaaa'), pdf, unread].map(content => ({ author: 'user' as const, content }))
  expect(openaiBody('m', { messages }).messages).toEqual([
    {
      role: 'user',
      content: [
        { type: 'image_url', image_url: { url: 'data:image/png;base64,aaaa' } },
        { type: 'file', file: { filename: 'report.pdf', file_data: 'data:application/pdf;base64,JVBERg==' } },
        note,
      ],
    },
  ])
  expect(anthropicBody('m', { messages, maxOutputTokens: 1 }).messages).toEqual([
    {
      role: 'user',
      content: [
        { type: 'image', source: { type: 'base64', media_type: 'image/png', data: 'aaaa' } },
        { type: 'document', source: { type: 'base64', media_type: 'application/pdf', data: 'JVBERg==' } },
        note,
      ],
    },
  ])
})
