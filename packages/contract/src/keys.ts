/** The keys of a tenant, the audit log of its changes, and the caller itself. */
import {
  auditPage,
  callerSchema,
  createKeyBody,
  keyIdSchema,
  keyResponse,
  keySchema,
  listAuditQuery,
  listKeysQuery,
  newKeyResponse,
  rotatedKeyResponse,
  rotateKeyBody,
} from '@rivulet/protocol'
import { z } from 'zod'
import { pageOf, route } from './route.ts'

const tag = 'keys'
const administering = { tag, scope: 'admin' } as const
const params = z.object({ id: keyIdSchema })

export const createKey = route('POST /v1/keys', {
  ...administering,
  body: createKeyBody,
  returns: { 201: newKeyResponse },
  doc: 'Creates a key and returns it, once',
})

export const listKeys = route('GET /v1/keys', {
  ...administering,
  query: listKeysQuery,
  returns: { 200: pageOf(keySchema) },
  doc: 'Lists keys, the oldest first, also revoked and expired keys',
})

export const revokeKey = route('DELETE /v1/keys/:id', {
  ...administering,
  params,
  returns: { 200: keyResponse },
  doc: 'Revokes a key',
})

export const rotateKey = route('POST /v1/keys/:id/rotate', {
  ...administering,
  params,
  body: rotateKeyBody.nullish(),
  returns: { 201: rotatedKeyResponse },
  doc: 'Creates a key with the terms of an old one, and sets the end of the old one',
})

export const listAudit = route('GET /v1/audit', {
  ...administering,
  query: listAuditQuery,
  returns: { 200: auditPage },
  doc: 'Lists the changes of a tenant and their callers, the newest first',
})

export const whoami = route('GET /v1/whoami', {
  tag,
  scope: 'tasks:read',
  ofAgents: true,
  returns: { 200: z.object({ caller: callerSchema }) },
  doc: 'Returns the caller and its permissions',
})
