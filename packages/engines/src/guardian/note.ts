/** Writes a line of the guardian to the log that it shares with its server: time, process, peak memory and text. */
export function note(text: string): void {
  const peak = Math.round(process.resourceUsage().maxRSS / 1_024)
  console.error(`${new Date().toISOString()} guardian ${process.pid} (at most ${peak} MB) ${text}`)
}
