/** A Dockerfile as data, stage by stage, and the .dockerignore beside it. As much of both as ours use; the rest is refused. */

export type Step = { instruction: 'COPY' | 'RUN'; flags: Record<string, string>; text: string }

export type Stage = {
  name: string
  /** An image, or the name of a stage before. */
  from: string
  /** Absolute, in the image. */
  workdir: string
  env: Record<string, string>
  user: string
  stopSignal: string
  steps: Step[]
  command: string[]
  healthcheck: string[]
}

/** A stage has what the stage has that it is made from. */
export function parseDockerfile(text: string): Stage[] {
  const stages: Stage[] = []
  for (const line of linesOf(text)) {
    const [, instruction = '', rest = ''] = /^(\w+)\s+(.*)$/s.exec(line) ?? []
    if (instruction === 'FROM') stages.push(newStage(rest, stages))
    else read(stages.at(-1), instruction, rest)
  }
  return stages
}

function linesOf(text: string): string[] {
  const code = text.split('\n').filter(line => !/^\s*#/.test(line))
  return code
    .join('\n')
    .replaceAll('\\\n', ' ')
    .split('\n')
    .filter(line => line.trim() !== '')
}

function newStage(text: string, before: readonly Stage[]): Stage {
  const [, from = '', name = ''] = /^(\S+) AS (\S+)$/.exec(text) ?? []
  if (!name) throw new Error(`A stage needs a name: FROM ${text}`)
  const empty = { workdir: '/', env: {}, user: 'root', stopSignal: 'SIGTERM', steps: [], command: [], healthcheck: [] }
  return { ...empty, ...structuredClone(before.find(stage => stage.name === from)), name, from }
}

function read(stage: Stage | undefined, instruction: string, rest: string): void {
  const [, options = '', text = ''] = /^((?:--\S+\s+)*)(.*)$/s.exec(rest) ?? []
  const flags = Object.fromEntries(Array.from(options.matchAll(/--([\w-]+)=(\S+)/g), ([, name = '', value = '']) => [name, value]))
  if (!stage) throw new Error(`${instruction} stands before the first FROM`)
  switch (instruction) {
    case 'COPY':
    case 'RUN':
      stage.steps.push({ instruction, flags, text })
      break
    case 'ENV':
      stage.env = { ...stage.env, ...Object.fromEntries([text.split(/=(.*)/s, 2)]) }
      break
    case 'WORKDIR':
      stage.workdir = text
      break
    case 'USER':
      stage.user = text
      break
    case 'STOPSIGNAL':
      stage.stopSignal = text
      break
    case 'CMD':
      stage.command = JSON.parse(text)
      break
    case 'HEALTHCHECK':
      stage.healthcheck = JSON.parse(text.replace(/^CMD\s+/, ''))
      break
    case 'EXPOSE':
      break
    default:
      throw new Error(`No test knows what ${instruction} does`)
  }
}

/** Whether a path, from the root of the context, is part of it. */
export function parseDockerignore(text: string): (path: string) => boolean {
  const rules = linesOf(text).map(line => {
    const isException = line.startsWith('!')
    const pattern = (isException ? line.slice(1) : line).trim()
    const source = pattern
      .split('**/')
      .map(part => part.split('*').map(literally).join('[^/]*'))
      .join('(?:.*/)?')
    return { isException, matches: new RegExp(`^${source}(?:/.*)?$`) }
  })
  return path => rules.findLast(({ matches }) => matches.test(path))?.isException ?? true
}

function literally(text: string): string {
  return text.replaceAll(/[\\^$.*+?()[\]{}|]/g, '\\$&')
}
