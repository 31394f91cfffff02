/** The objects of A2A 1.0 as those of 0.3: with `kind`, other names of states and roles, and parts of three kinds. */
import type { Json } from '@rivulet/protocol'
import type { A2aChunk } from './a2a-stream.ts'
import { type A2aMessage, type A2aStatus, type A2aTask, type Artifact, endsStream, type Part } from './a2a-task.ts'

export function legacyChunk(chunk: A2aChunk): object {
  if ('task' in chunk) return legacyTask(chunk.task)
  if ('statusUpdate' in chunk) {
    const { status, ...about } = chunk.statusUpdate
    return { kind: 'status-update', ...about, status: legacyStatus(status), final: endsStream(status) }
  }
  const { artifact, ...about } = chunk.artifactUpdate
  return { kind: 'artifact-update', ...about, artifact: legacyArtifact(artifact) }
}

/** A task in a list may be without artifacts. */
export function legacyTask({
  status,
  artifacts,
  history,
  ...ids
}: Omit<A2aTask, 'artifacts'> & Partial<Pick<A2aTask, 'artifacts'>>): object {
  return {
    ...{ kind: 'task', ...ids, status: legacyStatus(status) },
    ...(artifacts && { artifacts: artifacts.map(legacyArtifact) }),
    history: history.map(legacyMessage),
  }
}

function legacyStatus({ state, message, ...rest }: A2aStatus): object {
  return { ...rest, state: states[state], ...(message && { message: legacyMessage(message) }) }
}

function legacyMessage({ role, parts, ...ids }: A2aMessage): object {
  return { kind: 'message', ...ids, role: role === 'ROLE_USER' ? 'user' : 'agent', parts: parts.map(legacyPart) }
}

function legacyArtifact({ artifactId, parts }: Artifact): object {
  return { artifactId, parts: parts.map(legacyPart) }
}

function legacyPart(part: Part): object {
  if ('text' in part) return { kind: 'text', text: part.text }
  if ('data' in part) return { kind: 'data', data: objectOf(part.data) }
  const { mediaType: mimeType, filename: name } = part
  const about = { mimeType, ...(name !== undefined && { name }) }
  return { kind: 'file', file: 'raw' in part ? { bytes: part.raw, ...about } : { uri: part.url, ...about } }
}

/** The data of 0.3 is an object. */
function objectOf(data: Json): Json {
  return typeof data === 'object' && data !== null && !Array.isArray(data) ? data : { value: data }
}

const states = {
  TASK_STATE_SUBMITTED: 'submitted',
  TASK_STATE_WORKING: 'working',
  TASK_STATE_INPUT_REQUIRED: 'input-required',
  TASK_STATE_COMPLETED: 'completed',
  TASK_STATE_FAILED: 'failed',
  TASK_STATE_CANCELED: 'canceled',
} as const satisfies Record<A2aStatus['state'], string>
