/** The task that a command is about, and its turns. */
import { InvalidArgumentError } from 'commander'

export function parseTaskId(text: string): string {
  if (!/^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i.test(text))
    throw new InvalidArgumentError('The id of a task must be a UUID; rivulet tasks lists the ids.')
  return text.toLowerCase()
}

/** 0 means before the first turn. */
export function parseTurnNumber(text: string): number {
  if (!/^(0|[1-9]\d{0,8})$/.test(text)) throw new InvalidArgumentError('A turn must be a whole number.')
  return Number(text)
}
