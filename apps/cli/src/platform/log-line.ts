/** Formats a line of a program's log for people: time, program, level, message and task. Other lines stay unchanged. */
import { cleanLine, cleanText } from '../terminal/clean-text.ts'
import type { Pen, Style } from '../terminal/pen.ts'

const levels: Record<number, [name: string, style: Style]> = {
  10: ['trace', 'dim'],
  20: ['debug', 'dim'],
  30: ['info', 'green'],
  40: ['warn', 'yellow'],
  50: ['error', 'red'],
  60: ['fatal', 'red'],
}

type Fields = Record<string, unknown>

export function formatLogLine(program: string, line: string, pen: Pick<Pen, 'style'>): string {
  const record = parseRecord(line)
  const name = pen.style('cyan', program.padEnd(6))
  if (!record) return `${' '.repeat(12)} ${name} ${cleanText(line)}`
  const { time, level, msg, task, turn, err, pid: _, hostname: __, reqId: ___, req, res, responseTime, ...rest } = record
  const [levelName, style] = levels[Number(level)] ?? [String(level), 'dim']
  const about = [
    ...(isRecord(req) ? [`${req.method} ${req.url}`] : []),
    ...(isRecord(res) ? [String(res.statusCode)] : []),
    ...(typeof responseTime === 'number' ? [`${Math.round(responseTime)} ms`] : []),
    ...(task === undefined ? [] : [`task ${task}`]),
    ...(turn === undefined ? [] : [`turn ${turn}`]),
    ...Object.entries(rest).map(([key, value]) => `${key}=${typeof value === 'string' ? value : JSON.stringify(value)}`),
  ]
  const said = [cleanLine(String(msg ?? '')), ...(isRecord(err) ? [pen.style('red', cleanLine(String(err.message ?? '')))] : [])]
  const words = [pen.style(style, levelName.padEnd(5)), said.join(': '), pen.style('dim', about.map(cleanLine).join(' '))]
  const stack = isRecord(err) && Number(level) >= 50 ? stackOf(err) : ''
  return [pen.style('dim', timeOf(time)), name, ...words].filter(Boolean).join(' ') + pen.style('dim', stack)
}

function parseRecord(line: string): Fields | null {
  if (!line.startsWith('{')) return null
  try {
    const record: unknown = JSON.parse(line)
    return isRecord(record) && 'level' in record && 'msg' in record ? record : null
  } catch {
    return null
  }
}

function isRecord(value: unknown): value is Fields {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** In the time zone of the reader. */
function timeOf(time: unknown): string {
  if (typeof time !== 'number') return ' '.repeat(12)
  const at = new Date(time)
  const two = (part: number) => String(part).padStart(2, '0')
  return `${two(at.getHours())}:${two(at.getMinutes())}:${two(at.getSeconds())}.${String(at.getMilliseconds()).padStart(3, '0')}`
}

function stackOf({ stack }: Fields): string {
  const frames = typeof stack === 'string' ? stack.split('\n').filter(line => /^\s+at /.test(line)) : []
  return frames.map(frame => `\n${' '.repeat(20)}${cleanLine(frame)}`).join('')
}
