/**
 * The one file of a `multipart/form-data` body, and the fields beside it, as they arrive (RFC 7578). The bytes of the file pass through; only its headers and
 * the fields are held, so they are limited. Fields that follow the file are known once all of its bytes were read.
 */
import { fileNameSchema, mimeTypeSchema, RivuletError } from '@rivulet/protocol'

const maxHeadBytes = 8 * 1_024
const maxFieldBytes = 64 * 1_024
const maxFields = 20
const lineBreak = Buffer.from('\r\n')

type FormFile = { name: string | null; mimeType: string; bytes: AsyncGenerator<Buffer> }

type Part = { name: string; fileName: string | null; mimeType: string }

export class Form {
  readonly fields = new Map<string, string>()
  readonly #source: AsyncGenerator<Buffer>
  readonly #delimiter: Buffer
  /** What was read and not used yet. It begins with a line break, as every delimiter does. */
  #rest: Buffer = lineBreak

  /** @param contentType of the request, which names the boundary */
  constructor(contentType: string, source: AsyncGenerator<Buffer>) {
    const [, quoted, plain] = /^multipart\/form-data\s*;(?:.*;)?\s*boundary=(?:"([^"]{1,70})"|([^\s;"]{1,70}))/i.exec(contentType) ?? []
    const boundary = quoted ?? plain
    if (boundary === undefined) throw malformed('The body has to be multipart/form-data with a boundary')
    this.#delimiter = Buffer.from(`\r\n--${boundary}`)
    this.#source = source
  }

  /** @param field the field that has the file */
  async file(field: string): Promise<FormFile> {
    await this.#until(this.#delimiter, maxHeadBytes)
    const part = await this.#fileAmongFields()
    if (!part || part.name !== field) throw invalid(field, 'Send one file in this field')
    const name = part.fileName === null || part.fileName === '' ? null : check(fileNameSchema, part.fileName, field)
    return { name, mimeType: check(mimeTypeSchema, part.mimeType, field), bytes: this.#bytes() }
  }

  /** Reads fields up to the next file; null at the end of the form. */
  async #fileAmongFields(): Promise<Part | null> {
    for (let part = await this.#nextPart(); part; part = await this.#nextPart()) {
      if (part.fileName !== null) return part
      if (this.fields.size === maxFields) throw malformed(`A form may have at most ${maxFields} fields`)
      this.fields.set(part.name, (await this.#until(this.#delimiter, maxFieldBytes)).toString())
    }
    return null
  }

  async *#bytes(): AsyncGenerator<Buffer> {
    for (let end = this.#rest.indexOf(this.#delimiter); end < 0; end = this.#rest.indexOf(this.#delimiter)) {
      // The end of what is here may be the beginning of the delimiter.
      const certain = Math.max(0, this.#rest.length - this.#delimiter.length + 1)
      if (certain > 0) yield this.#take(certain)
      await this.#fill()
    }
    const end = this.#rest.indexOf(this.#delimiter)
    if (end > 0) yield this.#take(end)
    this.#take(this.#delimiter.length)
    if (await this.#fileAmongFields()) throw malformed('A form may have one file')
  }

  /** A delimiter is followed by `--` at the end of the form, else by the head of a part. */
  async #nextPart(): Promise<Part | null> {
    while (this.#rest.length < 2) await this.#fill()
    if (this.#rest.subarray(0, 2).toString() === '--') {
      // The request is complete when its last byte was read. What follows the form does not count.
      do this.#take(this.#rest.length)
      while (await this.#read())
      return null
    }
    const head = (await this.#until(Buffer.from('\r\n\r\n'), maxHeadBytes)).toString()
    const disposition = /^content-disposition:\s*form-data\s*;(.*)$/im.exec(head)?.[1] ?? ''
    const [, name] = /(?:^|;)\s*name="([^"]*)"/i.exec(disposition) ?? []
    if (name === undefined) throw malformed('Each part of a form has to have a name')
    const [, fileName] = /(?:^|;)\s*filename="([^"]*)"/i.exec(disposition) ?? []
    const [, mimeType = 'application/octet-stream'] = /^content-type:\s*(\S.*?)\s*$/im.exec(head) ?? []
    return { name, fileName: fileName === undefined ? null : unescaped(fileName), mimeType }
  }

  /** Takes everything before the mark, and the mark. */
  async #until(mark: Buffer, maxBytes: number): Promise<Buffer> {
    for (let end = this.#rest.indexOf(mark); ; end = this.#rest.indexOf(mark)) {
      if ((end < 0 ? this.#rest.length : end) > maxBytes) throw malformed('A head or a field of the form is too long')
      if (end < 0) {
        await this.#fill()
        continue
      }
      const before = this.#take(end)
      this.#take(mark.length)
      return before
    }
  }

  #take(length: number): Buffer {
    const taken = this.#rest.subarray(0, length)
    this.#rest = this.#rest.subarray(length)
    return taken
  }

  async #fill(): Promise<void> {
    if (!(await this.#read())) throw malformed('The form ends before its last boundary')
  }

  async #read(): Promise<boolean> {
    const { done, value } = await this.#source.next()
    if (!done) this.#rest = this.#rest.length === 0 ? value : Buffer.concat([this.#rest, value])
    return !done
  }
}

/** Browsers and SDKs write a quote and a line break of a name so (the HTML standard). */
function unescaped(name: string): string {
  return name.replace(/%22|%0d|%0a/gi, code => decodeURIComponent(code))
}

function check(schema: typeof fileNameSchema | typeof mimeTypeSchema, value: string, field: string): string {
  const parsed = schema.safeParse(value)
  if (parsed.success) return parsed.data
  throw invalid(field, parsed.error.issues[0]?.message ?? 'Invalid')
}

function malformed(reason: string): RivuletError {
  return new RivuletError('bad_request', reason)
}

function invalid(field: string, reason: string): RivuletError {
  return new RivuletError('validation_failed', 'Request validation failed', { details: [{ path: `/${field}`, reason }] })
}
