/**
 * The commands that a document tells its reader to type, and whether a test has typed each of them.
 *
 * A command is a line of a fenced block marked sh (bash, shell and zsh count as well, so that none hides under another name). It goes on
 * over a trailing backslash and inside quotes; comments and a `$ ` prompt are not part of it.
 */
export interface Proof {
  /** Exactly as shown, or a pattern for the whole of it. */
  command: string | RegExp
  /** The file that runs it. */
  runBy: string
}

export interface DocumentedCommand {
  document: string
  command: string
}

export function commandsOf(markdown: string): string[] {
  return shellBlocks(markdown).flatMap(commandsOfBlock)
}

/** Commands that nothing runs, and proofs of commands that nobody shows. */
export function unprovenCommands(commands: DocumentedCommand[], proofs: Proof[]): string[] {
  return [
    ...commands
      .filter(({ command }) => !proofs.some(proof => proves(proof, command)))
      .map(({ document, command }) => `${document} shows a command that no test runs: ${command}`),
    ...proofs
      .filter(proof => !commands.some(({ command }) => proves(proof, command)))
      .map(({ command, runBy }) => `no document shows the command that ${runBy} runs: ${command}`),
  ]
}

function proves({ command: wanted }: Proof, command: string): boolean {
  if (typeof wanted === 'string') return wanted === command
  return wanted.exec(command)?.[0] === command
}

function shellBlocks(markdown: string): string[] {
  const blocks: string[] = []
  let open: { fence: string; indent: string; isShell: boolean; lines: string[] } | null = null
  for (const line of markdown.split(/\r?\n/)) {
    if (!open) {
      const [, indent, fence, language] = line.match(/^(\s*)(`{3,}|~{3,})\s*([\w-]*)[^`]*$/) ?? []
      if (fence) open = { fence, indent: indent ?? '', isShell: /^(sh|bash|shell|zsh)$/.test(language ?? ''), lines: [] }
    } else if (isClosing(line, open.fence)) {
      if (open.isShell) blocks.push(open.lines.join('\n'))
      open = null
    } else {
      open.lines.push(line.startsWith(open.indent) ? line.slice(open.indent.length) : line.trimStart())
    }
  }
  return open?.isShell ? [...blocks, open.lines.join('\n')] : blocks
}

function isClosing(line: string, fence: string): boolean {
  const mark = line.trim()
  return mark.startsWith(fence) && mark === fence.charAt(0).repeat(mark.length)
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
