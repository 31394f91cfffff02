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
  idempotencyKey: 'rejected',
  audited: 'key.created',
  errors: ['quota_exceeded'],
  doc: 'Creates a key and returns it, once',
  note: 'The secret is the key itself, and is in no other response',
})

export const listKeys = route('GET /v1/keys', {
  ...administering,
  query: listKeysQuery,
  returns: { 200: pageOf(keySchema) },
  errors: ['bad_cursor'],
  doc: 'Lists keys, the oldest first, also revoked and expired keys',
})

export const revokeKey = route('DELETE /v1/keys/:id', {
  ...administering,
  params,
  returns: { 200: keyResponse },
  audited: 'key.revoked',
  errors: ['not_found'],
  doc: 'Revokes a key',
  note: 'The same for a key that was revoked before',
})

export const rotateKey = route('POST /v1/keys/:id/rotate', {
  ...administering,
  params,
  body: rotateKeyBody.nullish(),
  returns: { 201: rotatedKeyResponse },
  idempotencyKey: 'rejected',
  audited: 'key.rotated',
  errors: ['not_found', 'quota_exceeded'],
  doc: 'Creates a key with the terms of an old one, and sets the end of the old one',
  note: 'The new key, and the old one with its new end',
})

export const listAudit = route('GET /v1/audit', {
  ...administering,
  query: listAuditQuery,
  returns: { 200: auditPage },
  errors: ['overloaded'],
  doc: 'Lists the changes of a tenant and their callers, the newest first',
})

export const whoami = route('GET /v1/whoami', {
  tag,
  scope: 'tasks:read',
  ofAgents: true,
  returns: { 200: z.object({ caller: callerSchema }) },
  doc: 'Returns the caller and its permissions',
})
