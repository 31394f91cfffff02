/** The JSON types of what a client receives. Written by `npm run generate`. */

export const contents = {
  'text': 'text format?',
  'reasoning': 'summary:string[] content:string[]',
  'data': 'data:json raw? file? size?:number',
  'tool_request': 'callId name arguments:json raw?',
  'tool_response': 'callId name content:json isError:boolean file? size?:number',
  'media': 'mimeType data? url? file? name? size?:number',
} as const

export const deltas = {
  'text': 'text',
  'reasoning_summary': 'index:number text',
  'reasoning_content': 'index:number text',
  'data_json': 'text',
  'data': 'value:json',
  'tool_request': 'text',
  'tool_response': 'text',
  'media': 'bytes',
  'metadata': 'metadata:object',
} as const

export const events = {
  'turn.queued': 'task turn:number attempt:number at:number input?:content inputs?:content[] omitted?:string[]',
  'turn.started': 'task turn:number attempt:number at:number firstIndex:number input?:message inputs?:message[] state?:state',
  'message.started': 'task turn:number attempt:number at:number index:number author content:content metadata?:object',
  'message.delta': 'task turn:number attempt:number at:number index:number delta:delta offset:number',
  'message.replaced': 'task turn:number attempt:number at:number index:number content:content metadata?:object',
  'message.finished': 'task turn:number attempt:number at:number index:number status stopReason? usage?:object response?:object error?:object',
  'turn.discarded': 'task turn:number attempt:number at:number from:number',
  'turn.joined': 'task turn:number attempt:number at:number into:number index:number',
  'turn.waiting': 'task turn:number attempt:number at:number wait:wait more?:boolean',
  'turn.resumed': 'task turn:number attempt:number at:number wait status answer?:object',
  'state.changed': 'task turn:number attempt:number at:number version:number value?:json patch?:object',
  'child.started': 'task turn:number attempt:number at:number child name callId?',
  'child.finished': 'task turn:number attempt:number at:number child status',
  'turn.finished': 'task turn:number attempt:number at:number status stopReason usage?:object usageTotal?:object cost?:number error?:object',
  'custom': 'task turn:number attempt:number at:number name data:json index?:number',
  'snapshot': 'reason task:task turns:turn[] messages:message[] messagesFrom:number state?:state',
  'caught_up': 'task',
  'end': 'task status',
  'deleted': 'task',
} as const

export const entities = {
  'task': 'id agent name? parent? concurrencyKey? budget?:object status params:json metadata:object omitted?:string[] createdAt updatedAt',
  'summary': 'id agent name? status metadata:object title? turns:number ranMs:number runningSince? dueAt? tokens:number cost?:number error?:object createdAt updatedAt',
  'turn': 'id task number:number status attempt:number input?:content inputs?:content[] params?:json omitted?:string[] joinedTo?:number joinIndex?:number waits?:wait[] stopReason? usage?:object usageTotal?:object cost?:number error?:object queuedAt startedAt? finishedAt? dueAt? worker? traceId?',
  'message': 'task index:number turn:number attempt:number author content:content metadata:object status stopReason? usage?:object response?:object error?:object createdAt finishedAt?',
  'agent': 'name description params?:object timeoutMs?:number maxAttempts?:number pin?:boolean skills?:object[] inputModes?:string[] accepts?:object paused?:boolean workers:number queued:number running:number',
  'file': 'id name? mimeType size:number sha256 createdAt',
  'token': 'token can:string[] expiresAt',
  'key': 'id tenant name scopes:string[] createdAt expiresAt? revokedAt? lastUsedAt? replacedBy? allTenants?:boolean agents?:string[]',
  'caller': 'tenant scopes:string[] key? expiresAt? agents?:string[]',
  'attempt': 'attempt:number status worker? startedAt? finishedAt? error?:object usage?:object messages?:message[] omitted?:string[]',
  'step': 'turn:number name startedAt? finishedAt',
  'feedEntry': 'seq type at task agent turn?:number attempt?:number status? error?:object',
  'webhook': 'id url events:string[] agent? status createdAt oldSecretUntil?',
  'limits': 'agent concurrency?:number perKey?:number perMinute?:number weights?:object',
  'schedule': 'id agent cron timezone input?:content params?:json name? overlap missed status createdAt nextAt?',
  'wait': 'id task turn:number agent name kind index?:number title detail? schema?:object callId? tool? arguments?:json argumentsSchema?:object actions:string[] assignee? metadata:object status createdAt expiresAt child? answer?:object',
  'state': 'version:number value:json',
} as const
