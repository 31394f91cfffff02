import { createClient } from '@rivulet/client'

const rivulet = createClient({ url: process.env.RIVULET_URL })
const task = await rivulet.tasks.create({ agent: 'greeter', input: 'Grace' })
for await (const words of task.text()) process.stdout.write(words)
process.stdout.write('\n')
