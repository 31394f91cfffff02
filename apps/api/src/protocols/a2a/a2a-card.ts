/** The card of an agent: where and how clients of A2A reach it. Readers of 0.3 find their fields beside those of 1.0. */
import { createHash } from 'node:crypto'
import type { Agent, Skill } from '@rivulet/contract/agents'

/** @param url of the agent, without a slash at its end */
export function cardOf({ name, description, skills, inputModes = anyMode }: Agent, url: string) {
  const about = description || name
  const shown: Skill[] = skills ?? [{ id: name, name, description: about, tags: ['agent'] }]
  return {
    name,
    description: about,
    version: '0.2.0',
    supportedInterfaces: [
      { url, protocolBinding: 'JSONRPC', protocolVersion: '1.0' },
      { url, protocolBinding: 'HTTP+JSON', protocolVersion: '1.0' },
      { url, protocolBinding: 'JSONRPC', protocolVersion: '0.3' },
    ],
    capabilities: {
      streaming: true,
      pushNotifications: false,
      extendedAgentCard: false,
      extensions: [
        { uri: resumeExtension, description: 'Events have ids; a subscription with Last-Event-ID gets those after it', required: false },
      ],
    },
    defaultInputModes: inputModes,
    defaultOutputModes: anyMode,
    // A2A requires tags.
    skills: shown.map(skill => ({ tags: [], ...skill })),
    securitySchemes: { key: { httpAuthSecurityScheme: { scheme: 'bearer' }, ...{ type: 'http', scheme: 'bearer' } } },
    securityRequirements: [{ schemes: { key: { list: [] } } }],
    ...{ protocolVersion: '0.3.0', url, preferredTransport: 'JSONRPC', security: [{ key: [] }] },
  }
}

const anyMode = ['text/plain', 'application/json', 'application/octet-stream']

const resumeExtension = 'urn:rivulet:a2a:last-event-id'

export function etagOf(card: object): string {
  return `"${createHash('sha256').update(JSON.stringify(card)).digest('base64url').slice(0, 22)}"`
}
