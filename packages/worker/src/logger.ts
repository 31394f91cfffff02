/** The part of pino's interface that a worker uses, and a logger for programs that bring none. */
type Log = (fields: object, message?: string) => void

export type Logger = { debug: Log; info: Log; warn: Log; error: Log; child(fields: object): Logger }

/** JSON lines on stdout, in the format of pino. Debug lines are dropped. */
export function createLineLogger(common: object = {}): Logger {
  return { debug: () => {}, info: line(30), warn: line(40), error: line(50), child: fields => createLineLogger({ ...common, ...fields }) }

  function line(level: number): Log {
    return (fields, msg) => console.log(JSON.stringify({ level, time: Date.now(), ...common, ...describe(fields), ...(msg && { msg }) }))
  }
}

/** Errors have no fields of their own that JSON would show. */
function describe(fields: object): object {
  return Object.fromEntries(
    Object.entries(fields).map(([name, value]) => [name, value instanceof Error ? { message: value.message, stack: value.stack } : value]),
  )
}
