/** The URL under which this machine reaches a listener on a host and port. */
export function listeningUrl(host: string, port: number): string {
  const reached = anyAddress[host] ?? host
  return `http://${reached.includes(':') ? `[${reached}]` : reached}:${port}`
}

/** Every address of the machine: one cannot be connected to under that name everywhere. */
const anyAddress: Record<string, string> = { '0.0.0.0': '127.0.0.1', '::': '::1' }
