/** The files of a tenant. Their bytes are bodies as they are, not JSON. */
import { fileIdSchema, fileSchema } from '@rivulet/protocol'
import { z } from 'zod'
import { nothing, route } from './route.ts'

const tag = 'files'
const params = z.object({ id: fileIdSchema })

export const uploadFile = route('POST /v1/files', {
  ...{ tag, scope: 'tasks:write', token: 'send', checksTask: true, ofAgents: true, echoes: 201 },
  consumes: ['*/*'],
  body: z.any(),
  returns: { 201: z.object({ file: fileSchema }) },
  idempotencyKey: 'kept',
  audited: 'file.created',
  errors: ['request_timeout', 'quota_exceeded', 'overloaded'],
  doc: 'Stores the body as a file',
  note: '[The body](files.md) is the file',
})

export const downloadFile = route('GET /v1/files/:id', {
  ...{ tag, scope: 'tasks:read', token: 'read', checksTask: true },
  params,
  returns: { 200: z.any().describe('Its bytes'), 206: z.any().describe('A range of them') },
  errors: ['not_found', 'range_not_satisfiable', 'overloaded'],
  doc: 'Returns the bytes of a file, or a range of them',
  note: '304 if the client has it. `HEAD` returns the headers alone',
})

export const deleteFile = route('DELETE /v1/files/:id', {
  ...{ tag, scope: 'tasks:write', ofAgents: true },
  params,
  returns: { 204: nothing },
  audited: 'file.deleted',
  errors: ['not_found', 'file_in_use'],
  doc: 'Deletes a file that no task refers to',
})
