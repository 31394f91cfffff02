/**
 * The stages of a Dockerfile as folders instead of images: what it copies is copied, and what it runs is run as a plain command. There is no isolation:
 * a command sees the whole machine.
 */
import { execFile } from 'node:child_process'
import { cpSync, mkdirSync, readFileSync } from 'node:fs'
import { basename, join, relative } from 'node:path'
import { promisify } from 'node:util'
import { parseDockerfile, parseDockerignore, type Stage } from './dockerfile.ts'

export type ImageFolders = {
  /** Runs every step on what .dockerignore lets through. */
  build(env: NodeJS.ProcessEnv): Promise<void>
  stageOf(name: string): Stage
  /** The working folder of a stage. */
  placeOf(name: string): string
}

/** @param context the folder with the Dockerfile and its .dockerignore; @param folder gets a copy of the context and a folder for each stage */
export function createImageFolders(context: string, folder: string): ImageFolders {
  const stages = parseDockerfile(readFileSync(join(context, 'Dockerfile'), 'utf8'))
  return { build, stageOf, placeOf: name => placeIn(stageOf(name), stageOf(name).workdir) }

  async function build(env: NodeJS.ProcessEnv): Promise<void> {
    const isInContext = parseDockerignore(readFileSync(join(context, '.dockerignore'), 'utf8'))
    const filter = (path: string) => path === context || isInContext(relative(context, path))
    cpSync(context, join(folder, 'context'), { recursive: true, filter })
    for (const stage of stages) {
      const cwd = placeIn(stage, stage.workdir)
      mkdirSync(cwd, { recursive: true })
      for (const { instruction, flags, text } of stage.steps) {
        if (instruction === 'COPY') copy(stage, flags.from, text.split(/\s+/))
        else await promisify(execFile)('sh', ['-c', text], { cwd, env, maxBuffer: 1 << 26 })
      }
    }
  }

  function copy(stage: Stage, from: string | undefined, paths: string[]): void {
    const target = paths.at(-1) ?? ''
    for (const path of paths.slice(0, -1)) {
      const source = from ? placeIn(stageOf(from), path) : join(folder, 'context', path)
      const isFile = target.endsWith('/') && !from
      const destination = join(placeIn(stage, stage.workdir), target, isFile ? basename(path) : '')
      cpSync(source, destination, { recursive: true })
    }
  }

  function stageOf(name: string): Stage {
    const stage = stages.find(known => known.name === name)
    if (!stage) throw new Error(`The Dockerfile has no stage ${name}`)
    return stage
  }

  function placeIn({ name }: Stage, path: string): string {
    return join(folder, 'stages', name, path)
  }
}
