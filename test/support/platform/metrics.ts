/** What `/metrics` of one or more APIs says, added up. */

/** The sum of every series of this name that has these labels. */
export async function metric(urls: string | readonly string[], name: string, labels: Record<string, string> = {}): Promise<number> {
  const values = await Promise.all([urls].flat().map(url => scrape(url, name, labels)))
  return values.reduce((sum, value) => sum + value, 0)
}

async function scrape(url: string, name: string, labels: Record<string, string>): Promise<number> {
  const text = await (await fetch(`${url}/metrics`)).text()
  if (!text.includes(`# TYPE ${name} `)) throw new Error(`${url} has no metric ${name}`)
  return text.split('\n').reduce((sum, line) => {
    const [series = '', value = ''] = line.split(/ (?=\S+$)/)
    const isMeant = series === name || series.startsWith(`${name}{`)
    const fits = Object.entries(labels).every(([label, wanted]) => series.includes(`${label}="${wanted}"`))
    return isMeant && fits ? sum + Number(value) : sum
  }, 0)
}
