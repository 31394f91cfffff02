/** The TypeScript programs of a document, which a test imports as modules, in a folder beside the SDKs that they use. */
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { blocksOf, type FencedBlock } from '../support/texts/fenced-blocks.ts'

const base = fileURLToPath(new URL('.rivulet/', import.meta.url))

export class ShownPrograms {
  readonly blocks: FencedBlock[]
  #folder = ''
  #count = 0

  /** @param page below `docs` */
  constructor(page: string) {
    this.blocks = blocksOf(readFileSync(new URL(`../../docs/${page}`, import.meta.url), 'utf8'))
  }

  get programs(): FencedBlock[] {
    return this.blocks.filter(({ language }) => language === 'ts')
  }

  /** @param mark a text that only this program has */
  textWith(mark: string): string {
    const [program, ...others] = this.blocks.filter(({ text }) => text.includes(mark))
    if (!program || others.length > 0) throw new Error(`${others.length + (program ? 1 : 0)} programs have ${mark}`)
    return program.text
  }

  /** Before any request, because to load an SDK can block this process for longer than the API keeps an idle connection. */
  async loadPackages(mark: string): Promise<void> {
    for (const [, name] of this.textWith(mark).matchAll(/^import .* from '([^']+)'/gm)) await import(name ?? '')
  }

  /** Runs it against this API; resolves with what it exports. */
  load(mark: string, url: string): Promise<object> {
    return this.run(this.textWith(mark), url)
  }

  async run(text: string, url: string): Promise<object> {
    mkdirSync(base, { recursive: true })
    this.#folder ||= mkdtempSync(join(base, 'programs-'))
    this.#count += 1
    const file = join(this.#folder, `program-${this.#count}.ts`)
    writeFileSync(file, text.replaceAll('http://127.0.0.1:4000', url))
    return import(file)
  }

  close(): void {
    if (this.#folder) rmSync(this.#folder, { recursive: true, force: true })
  }
}
