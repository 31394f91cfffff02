import { expect, test } from 'vitest'
import { cardOf } from './a2a-card.ts'

const agent = { name: 'weather', description: 'Tells the weather', workers: 1, queued: 0, running: 0 }

test('the card has the skills and the input modes that the agent has announced', () => {
  const skills = [{ id: 'rain', name: 'Rain', description: 'Tells whether it rains', examples: ['Oslo?'] }]
  const card = cardOf({ ...agent, skills, inputModes: ['text/plain'] }, 'http://api/a2a/weather')
  expect([card.skills, card.defaultInputModes]).toEqual([[{ ...skills[0], tags: [] }], ['text/plain']])
})

test('an agent that has announced none has one skill, its description, and takes any input', () => {
  const { skills, defaultInputModes } = cardOf(agent, 'http://api/a2a/weather')
  expect(skills).toEqual([{ id: 'weather', name: 'weather', description: 'Tells the weather', tags: ['agent'] }])
  expect(defaultInputModes).toContain('application/octet-stream')
})
