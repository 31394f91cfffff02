/** The messages right before an index. A page ends earlier where messages are large: then fewer are asked for, until they reach up to the index. */
import type { Message, TaskHandle } from '@rivulet/client'

const pageSize = 100

export async function readEarlier(task: Pick<TaskHandle, 'messages'>, before: number): Promise<readonly Message[]> {
  for (let size = Math.min(pageSize, before); ; size = Math.ceil(size / 4)) {
    const after = before - size - 1
    const { data } = await task.messages({ limit: size, ...(after >= 0 && { after }) })
    if (size === 1 || data.at(-1)?.index === before - 1) return data
  }
}
