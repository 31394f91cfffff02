/** A file that the API stores: bytes that do not change, and what its uploader said of them. */
import { z } from 'zod'
import { maxFileName, maxMimeType } from '../limits.ts'

export type FileId = string & { readonly idOf?: 'file' }

/** As for tasks: capitals become small letters, every other spelling is refused. */
export const fileIdSchema = z.uuid().toLowerCase() as unknown as z.ZodType<FileId, string>

/** A name is shown, and used to save the file; it is never a path. Control characters and those that turn text around are refused. */
export const fileNameSchema = z
  .string()
  .min(1)
  .max(maxFileName)
  .regex(/^[^\p{Cc}\u2028\u2029\u202a-\u202e\u2066-\u2069/\\]*$/u, 'Use no slash, no control character and no line break')
  .refine(name => !/^\.{1,2}$/.test(name.trim()), 'Use a name other than . and ..')

/** `type/subtype`, with parameters. */
export const mimeTypeSchema = z
  .string()
  .max(maxMimeType)
  .regex(/^[\w!#$&^.+-]+\/[\w!#$&^.+-]+( *; *[\w-]+=([\w!#$&^.+-]+|"[\w !#$&^.+:=,/-]*"))*$/, 'Use type/subtype')

export const fileSchema = z.object({
  id: fileIdSchema,
  name: fileNameSchema.optional(),
  mimeType: z.string(),
  size: z.int().min(0),
  /** In hex. */
  sha256: z.string(),
  createdAt: z.iso.datetime(),
})

export type File = z.output<typeof fileSchema>
