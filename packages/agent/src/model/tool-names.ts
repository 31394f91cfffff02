/**
 * The names of tools as providers accept them. A tool may be named `fs.read_file`, but OpenAI and Anthropic accept no dots: requests name it
 * `fs_read_file`, and the calls that come back get its own name again.
 */
import type { HistoryMessage, ModelRequest } from './model.ts'

type WireRequest = {
  request: ModelRequest
  /** The tool that a call in the response names. */
  nameOf(wireName: string): string
}

export function withWireNames(request: ModelRequest): WireRequest {
  const { tools = [], toolChoice, messages } = request
  const wireNames = new Map<string, string>()
  const taken = new Set(tools.map(({ name }) => name).filter(name => !name.includes('.')))
  for (const { name } of tools) if (name.includes('.')) wireNames.set(name, free(name))
  const names = new Map(Array.from(wireNames, ([name, wireName]) => [wireName, name]))
  const wire = (name: string) => wireNames.get(name) ?? undotted(name)
  return {
    request: {
      ...request,
      messages: messages.map(message => renamed(message, wire)),
      ...(request.tools && { tools: tools.map(tool => ({ ...tool, name: wire(tool.name) })) }),
      ...(typeof toolChoice === 'object' && { toolChoice: { name: wire(toolChoice.name) } }),
    },
    nameOf: wireName => names.get(wireName) ?? wireName,
  }

  function free(name: string): string {
    let wireName = undotted(name)
    while (taken.has(wireName)) wireName = `${wireName.slice(0, 63)}_`
    taken.add(wireName)
    return wireName
  }
}

function renamed(message: HistoryMessage, wire: (name: string) => string): HistoryMessage {
  const { content } = message
  if (content.type !== 'tool_request' && content.type !== 'tool_response') return message
  return { ...message, content: { ...content, name: wire(content.name) } }
}

function undotted(name: string): string {
  return name.replaceAll('.', '_')
}
