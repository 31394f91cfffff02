/** The part of pino's interface that a worker uses. */
type Log = (fields: object, message?: string) => void

export type Logger = { debug: Log; info: Log; warn: Log; error: Log; child(fields: object): Logger }
