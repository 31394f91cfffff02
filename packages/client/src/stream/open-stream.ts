/** Opens an event stream. The head of the response has to arrive as soon as any other byte. */

import type { Http } from '../http/http.ts'
import { unreachable } from '../http/rejection.ts'

export async function openStream(
  { http, silenceMs }: { http: Http; silenceMs: number },
  path: string,
  controller: AbortController,
  body?: unknown,
): Promise<Response> {
  const timer = setTimeout(() => controller.abort(unreachable(`No answer within ${silenceMs} ms`)), silenceMs)
  try {
    return await http.open(path, controller.signal, body)
  } finally {
    clearTimeout(timer)
  }
}
