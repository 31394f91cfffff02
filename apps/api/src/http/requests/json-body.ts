/**
 * The rules for request bodies: JSON only, uncompressed, valid UTF-8, bounded in depth and size. Neither body nor query nor path may hold text
 * that Postgres cannot store.
 */
import { findJsonFault, type Limits, limitNames, RivuletError } from '@rivulet/protocol'
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
  app.addHook('preValidation', async ({ query }) => rejectFaults(query))
  // After the schema, which names the rule for an id.
  app.addHook('preHandler', async ({ params }) => rejectFaults(params))
  const options = { parseAs: 'buffer', bodyLimit: limits.bodyBytes } as const
  app.addContentTypeParser('application/json', options, async (request: FastifyRequest, body: Buffer) =>
    body.length === 0 && !needsBody(request) ? undefined : parse(body),
  )

  function parse(body: Buffer): unknown {
    const value = parseText(decode(body))
    rejectFaults(value)
    return value
  }

  function rejectFaults(value: unknown): void {
    const fault = findJsonFault(value, limits)
    if (!fault) return
    throw new RivuletError(fault.code, messages[fault.code], { details: [{ path: fault.path || '/', reason: messages[fault.code] }] })
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

  const messages = {
    json_too_deep: `JSON may have at most ${limits.jsonDepth} levels of nesting (${limitNames.jsonDepth})`,
    json_too_complex: `JSON may have at most ${limits.jsonItems} keys and items (${limitNames.jsonItems})`,
    invalid_characters: 'Strings must not contain NUL or half of a surrogate pair',
    forbidden_key: 'This key name is not allowed',
    validation_failed: 'A number is too large to be stored',
  }
}

/** Some clients send the content type with every request, also with one that has no body. */
function needsBody({ routeOptions: { schema } }: FastifyRequest): boolean {
  return schema?.body instanceof z.ZodType && !schema.body.safeParse(undefined).success
}
