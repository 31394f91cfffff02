/** What a worker needs of a logger: pino's shape. */
type Log = (fields: object, message?: string) => void

export type Logger = { debug: Log; info: Log; warn: Log; error: Log; child(fields: object): Logger }
