/** The host and port of a URL, however the URL is spelled: in capitals, with a dot at the end, as another form of the address, without the usual port. */
export function deliveryTarget(url: string): string {
  const { protocol, hostname, port } = new URL(url)
  return `${hostname.replace(/\.$/, '')}:${port || (protocol === 'https:' ? 443 : 80)}`
}
