/** Which results of tools are errors. The SDK turns an error of a tool into a sentence for the model and keeps no other mark of it. */

/** The SDK's sentences for a tool that threw, that took too long, or that a person declined. */
const sentences = [
  /^An error occurred while running the tool\./,
  /^Tool '.*' timed out after \d+ms\.$/,
  /^Tool execution was not approved\.$/,
]

const ownPrefixes = ['Error: ', 'Declined: ']

/** For `errorFunction` of a tool: the model, and every viewer, gets the message of the error. */
export function toolError(_context: unknown, error: unknown): string {
  return `Error: ${error instanceof Error ? error.message : String(error)}`
}

export function isToolError(result: unknown): boolean {
  if (typeof result !== 'string') return false
  return ownPrefixes.some(prefix => result.startsWith(prefix)) || sentences.some(sentence => sentence.test(result))
}
