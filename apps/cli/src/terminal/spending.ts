/** Tokens and money, for people. */

export function formatTokens(count: number): string {
  return Math.round(count).toLocaleString('en')
}

/** In US dollars: cents, and more places where the sum is smaller. */
export function formatCost(usd: number): string {
  const places = usd > 0 && usd < 0.1 ? 6 : 2
  return `$${usd.toFixed(places)}`
}
