/** The text of a Lua script. Builds replace this module by one that holds the texts, because a bundle has no files beside it. */
import { readFileSync } from 'node:fs'

export function readLua(name: string): string {
  return readFileSync(new URL(`./lua/${name}.lua`, import.meta.url), 'utf8')
}
