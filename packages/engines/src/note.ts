/** Lines of a guardian in the log that it shares with its server: when, who, what, and how much memory that process had at most. */
export function note(text: string): void {
  const peak = Math.round(process.resourceUsage().maxRSS / 1_024)
  console.error(`${new Date().toISOString()} guardian ${process.pid} (at most ${peak} MB) ${text}`)
}
