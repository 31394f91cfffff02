/**
 * The commands that a document tells its reader to type, and whether a test has typed each of them.
 *
 * A command is a line of a fenced block marked sh (bash, shell and zsh count as well, so that none hides under another name). It goes on
 * over a trailing backslash and inside quotes; comments and a `$ ` prompt are not part of it.
 */
import { blocksOf } from '../support/texts/fenced-blocks.ts'

export interface Proof {
  /** Exactly as shown, or a pattern for the whole of it. */
  command: string | RegExp
  /** The only document whose commands it speaks for. Default: whichever shows it. */
  document?: string
  /** The file that runs it. */
  runBy: string
}

interface DocumentedCommand {
  document: string
  command: string
}

export function commandsOf(markdown: string): string[] {
  const shell = blocksOf(markdown).filter(({ language }) => /^(sh|bash|shell|zsh)$/.test(language))
  return shell.flatMap(({ text }) => commandsOfBlock(text))
}

/** Commands that no test runs, and proofs of commands that no document shows. */
export function unprovenCommands(commands: DocumentedCommand[], proofs: Proof[]): string[] {
  return [
    ...commands
      .filter(shown => !proofs.some(proof => proves(proof, shown)))
      .map(({ document, command }) => `${document} shows a command that no test runs: ${command}`),
    ...proofs
      .filter(proof => !commands.some(shown => proves(proof, shown)))
      .map(({ command, runBy }) => `no document shows the command that ${runBy} runs: ${command}`),
  ]
}

function proves({ command: wanted, document: only }: Proof, { document, command }: DocumentedCommand): boolean {
  if (only !== undefined && only !== document) return false
  if (typeof wanted === 'string') return wanted === command
  return wanted.exec(command)?.[0] === command
}

function commandsOfBlock(block: string): string[] {
  const commands: string[] = []
  let command = ''
  let quote = ''
  for (let at = 0; at < block.length; at++) {
    const char = block.charAt(at)
    if (char === '\\' && quote !== "'") {
      command += block.slice(at, at + 2)
      at++
    } else if (quote) {
      command += char
      if (char === quote) quote = ''
    } else if (char === '\n') {
      finish()
    } else if (char === '#' && /^$|\s$/.test(command)) {
      at = endOfLine(block, at) - 1
    } else {
      command += char
      if (char === "'" || char === '"') quote = char
    }
  }
  finish()
  return commands

  function finish(): void {
    const shown = command
      .replace(/\s*\\\n\s*/g, ' ')
      .trim()
      .replace(/^\$ /, '')
    if (shown) commands.push(shown)
    command = ''
  }
}

function endOfLine(text: string, from: number): number {
  const end = text.indexOf('\n', from)
  return end < 0 ? text.length : end
}
