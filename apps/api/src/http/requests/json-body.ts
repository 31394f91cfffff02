/**
 * The rules for request bodies: JSON only, uncompressed, valid UTF-8, bounded in depth and size. Neither body nor query nor path may hold text
 * that Postgres cannot store.
 */
import { findJsonFault, type Json, type Limits, limitNames, RivuletError } from '@rivulet/protocol'
import type { FastifyInstance, FastifyRequest } from 'fastify'
import { z } from 'zod'

export const sendPlainJson = 'Send application/json, without a content encoding'

export function acceptJsonOnly(app: FastifyInstance, limits: Limits): void {
  const decoder = new TextDecoder('utf-8', { fatal: true })
  app.removeAllContentTypeParsers()
  app.addHook('onRequest', async request => {
    const encoding = request.headers['content-encoding']
    if (encoding && encoding.toLowerCase() !== 'identity') {
      throw new RivuletError('unsupported_media_type', sendPlainJson)
    }
  })
  app.addHook('preValidation', async ({ query }) => rejectFaults(query, limits))
  // After the schema, which names the rule for an id.
  app.addHook('preHandler', async ({ params }) => rejectFaults(params, limits))
  const options = { parseAs: 'buffer', bodyLimit: limits.bodyBytes } as const
  app.addContentTypeParser('application/json', options, async (request: FastifyRequest, body: Buffer) =>
    body.length === 0 && !needsBody(request) ? undefined : parse(body),
  )

  function parse(body: Buffer): unknown {
    const value = parseText(decode(body))
    rejectFaults(value, limits)
    return value
  }

  function decode(body: Buffer): string {
    try {
      return decoder.decode(body)
    } catch (cause) {
      throw new RivuletError('invalid_utf8', 'The body is not valid UTF-8', { cause })
    }
  }

  function parseText(text: string): unknown {
    try {
      return JSON.parse(text)
    } catch (cause) {
      throw new RivuletError('invalid_json', 'The body is not JSON', { cause })
    }
  }
}

/** JSON within a text of a body, such as the arguments of a call, has the rules of a body. Undefined for a text that is not JSON. */
export function parseCallerText(text: string, limits: Limits, path: string): Json | undefined {
  let value: Json
  try {
    value = JSON.parse(text)
  } catch {
    return undefined
  }
  rejectFaults(value, limits, path)
  return value
}

function rejectFaults(value: unknown, limits: Limits, within = ''): void {
  const fault = findJsonFault(value, limits)
  if (!fault) return
  const reason = reasonFor(fault.code, limits)
  throw new RivuletError(fault.code, reason, { details: [{ path: `${within}${fault.path}` || '/', reason }] })
}

type FaultCode = NonNullable<ReturnType<typeof findJsonFault>>['code']

function reasonFor(code: FaultCode, limits: Limits): string {
  switch (code) {
    case 'json_too_deep':
      return `JSON may have at most ${limits.jsonDepth} levels of nesting (${limitNames.jsonDepth})`
    case 'json_too_complex':
      return `JSON may have at most ${limits.jsonItems} keys and items (${limitNames.jsonItems})`
    case 'invalid_characters':
      return 'Strings must not contain NUL or half of a surrogate pair'
    case 'forbidden_key':
      return 'This key name is not allowed'
    case 'validation_failed':
      return 'A number is too large to be stored'
    default:
      return code satisfies never
  }
}

/** Some clients send the content type with every request, also with one that has no body. */
function needsBody({ routeOptions: { schema } }: FastifyRequest): boolean {
  return schema?.body instanceof z.ZodType && !schema.body.safeParse(undefined).success
}
