/**
 * Stops this process when the processes that run it in the foreground are gone: npm and `sh` do not pass SIGTERM on, so a `kill` of `npm start` would
 * leave the platform on its port.
 *
 * A launcher is a parent that only waits for this process: npm, npx, pnpm or yarn, and a shell with `-c`, as npm starts one. The chain ends at the first
 * other process. A shell whose command has `&`, `nohup`, `setsid` or `disown` ends before its programs on purpose, so it is no launcher. Neither is
 * an interactive shell, a script, a service manager or a container's init: `nohup npx rivulet start &` outlives the terminal, because npx does.
 */
import { commandOf, parentOf } from '@rivulet/engines'

const pollMs = 250

/** Calls `onGone` once, when the first of them is gone. Does not keep the process alive. */
export function watchLaunchers(onGone: () => void): void {
  const parent = process.ppid
  const launchers = launchersFrom(parent)
  if (launchers.length === 0) return
  const poll = setInterval(() => {
    // The system gives an orphan another parent at once, also while the dead one is a zombie.
    if (process.ppid === parent && launchers.every(exists)) return
    clearInterval(poll)
    onGone()
  }, pollMs)
  poll.unref()
}

function launchersFrom(parent: number): number[] {
  const launchers: number[] = []
  for (let pid = parent; pid > 1 && isLauncher(commandOf(pid)); pid = parentOf(pid)) launchers.push(pid)
  return launchers
}

export function isLauncher(command: string): boolean {
  if (packageManager.test(command)) return true
  return shellWithCommand.test(command) && !detaching.test(command)
}

/** npm renames its process to `npm start`; the others are Node with a script. */
const packageManager = /^(?:\S*node\S* (?:-\S+ )*)?(?:\S*\/)?(?:npm|npx|pnpm|pnpx|yarn)(?:-cli)?(?:\.[cm]?js)?(?: |$)/
const shellWithCommand = /^-?(?:\S*\/)?(?:ba|da|a|k|z)?sh (?:-\S+ )*-\w*c /
/** One `&`, other than in `&&`, `>&2`, `2>&1` and `&>`. */
const detaching = /(?<![&>])&(?![&>])|\b(?:nohup|setsid|disown)\b/

function exists(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return true
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM'
  }
}
