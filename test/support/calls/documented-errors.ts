/** The codes of errors: those that the OpenAPI document has for each call, and the one of a response. */

type Operation = { responses: Record<string, { description: string }> }
type Document = { paths: Record<string, Record<string, Operation>> }

/** By `POST /v1/tasks/{id}`. */
export async function readDocumentedErrors(url: string): Promise<ReadonlyMap<string, readonly string[]>> {
  const { paths } = (await (await fetch(`${url}/openapi.json`)).json()) as Document
  return new Map(
    Object.entries(paths).flatMap(([path, operations]) =>
      Object.entries(operations).map(([method, { responses }]) => [`${method.toUpperCase()} ${path}`, codesIn(responses)] as const),
    ),
  )
}

function codesIn(responses: Operation['responses']): string[] {
  return Object.entries(responses).flatMap(([status, { description }]) => (Number(status) >= 400 ? description.split(', ') : []))
}

type AnyError = { error: { code: string | number; data?: { code: string }; details?: { reason: string }[] } }

/** In JSON-RPC, our code is in the data of the error; in A2A over HTTP, it is its reason. */
export function errorCodeOf(body: string): string | undefined {
  const { code, data, details } = (JSON.parse(body) as AnyError).error
  return data?.code ?? (typeof code === 'number' ? details?.[0]?.reason.toLowerCase() : code)
}
