/** Limits how many turns a process runs at a time, over all its agents, and of each agent. */
export type Slots = {
  /** Runs the work if there is a free slot; returns whether there was one. */
  use(agent: string, work: () => Promise<void>): Promise<boolean>
  free(): number
  /** How many turns of an agent run, and how many may. */
  roomOf(agent: string): { used: number; most: number }
}

export function createSlots(count: number, limitOf: (agent: string) => number, onChange: () => void): Slots {
  const used = new Map<string, number>()
  let free = count
  return { use, free: () => free, roomOf }

  async function use(agent: string, work: () => Promise<void>): Promise<boolean> {
    if (free === 0 || usedBy(agent) >= limitOf(agent)) return false
    change(agent, 1)
    try {
      await work()
      return true
    } finally {
      change(agent, -1)
    }
  }

  function change(agent: string, taken: number): void {
    free -= taken
    used.set(agent, usedBy(agent) + taken)
    onChange()
  }

  function roomOf(agent: string): { used: number; most: number } {
    const used = usedBy(agent)
    return { used, most: Math.min(used + free, limitOf(agent)) }
  }

  function usedBy(agent: string): number {
    return used.get(agent) ?? 0
  }
}
