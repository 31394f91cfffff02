/** A form is read wherever its bytes are cut, and any other body is refused. */
import { expect, test } from 'vitest'
import { Form } from './form-file.ts'

const boundary = 'a-boundary'
const part = (head: string, body: Buffer | string) => [`\r\n--${boundary}\r\n${head}\r\n\r\n`, body]
const field = (name: string, value: string) => part(`Content-Disposition: form-data; name="${name}"`, value)
const file = (body: Buffer | string, name = 'a.txt') =>
  part(`Content-Disposition: form-data; name="file"; filename="${name}"\r\nContent-Type: text/plain`, body)
const end = [`\r\n--${boundary}--\r\n`]

function bytesOf(parts: readonly (Buffer | string)[]): Buffer {
  // A form begins with its first boundary, without a line break.
  return Buffer.concat(parts.map(one => Buffer.from(one))).subarray(2)
}

async function* cut(bytes: Buffer, size: number): AsyncGenerator<Buffer> {
  for (let at = 0; at < bytes.length; at += size) yield bytes.subarray(at, at + size)
}

async function read(parts: readonly (Buffer | string)[], size = 1_000, contentType = `multipart/form-data; boundary=${boundary}`) {
  const form = new Form(contentType, cut(bytesOf(parts), size))
  const { name, mimeType, bytes } = await form.file('file')
  const content: Buffer[] = []
  for await (const piece of bytes) content.push(piece)
  return { name, mimeType, content: Buffer.concat(content), fields: Object.fromEntries(form.fields) }
}

test('wherever it is cut, a form is its file and its fields', async () => {
  // Lines that begin as a boundary does, and bytes that are no text.
  const content = Buffer.concat([Buffer.from(`\r\n--a-bound\r\n--\r\n\r`), Buffer.from([0, 255, 13, 10, 45, 45]), Buffer.from('end')])
  const whole = [...field('purpose', 'user_data'), ...file(content, 'caf\u00e9 %22x%22.txt'), ...field('after', 'it'), ...end]
  const expected = { name: 'caf\u00e9 "x".txt', mimeType: 'text/plain', content, fields: { purpose: 'user_data', after: 'it' } }
  for (let size = 1; size <= bytesOf(whole).length; size += 1) expect(await read(whole, size)).toEqual(expected)
  expect(await read(whole, 7, `multipart/form-data; charset=utf-8; boundary="${boundary}"`)).toEqual(expected)
  expect(await read([...file(''), ...end], 3)).toMatchObject({ content: Buffer.alloc(0), fields: {} })
})

test.each([
  ['without a boundary', [...file('x'), ...end], 'text/plain', 'multipart/form-data'],
  ['that ends early', file('x'), undefined, 'last boundary'],
  ['without a file', [...field('purpose', 'user_data'), ...end], undefined, 'validation failed'],
  ['with two files', [...file('x'), ...file('y'), ...end], undefined, 'one file'],
  ['with a long field', [...field('purpose', 'x'.repeat(100_000)), ...file('x'), ...end], undefined, 'too long'],
  ['with many fields', [...Array.from({ length: 21 }, (_, i) => field(`f${i}`, 'x')).flat(), ...file('x'), ...end], undefined, '20 fields'],
  ['whose file has a path as its name', [...file('x', '../x'), ...end], undefined, 'validation failed'],
  ['with a part without a name', [...part('Content-Type: text/plain', 'x'), ...end], undefined, 'a name'],
])('a form %s is refused', async (_, parts, contentType, reason) => {
  await expect(read(parts, 1_000, contentType)).rejects.toThrow(reason)
})
