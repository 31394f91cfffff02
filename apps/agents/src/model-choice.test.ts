import { expect, test } from 'vitest'
import { chooseModel } from './model-choice.ts'

test('a provider answers where one is configured, a script where none is', () => {
  const offline = () => 'hello'
  expect(chooseModel({}, offline).name).toBe('scripted')
  expect(chooseModel({ apiKey: 'k', model: 'm' }, offline).name).toBe('m')
  expect(chooseModel({ baseUrl: 'http://127.0.0.1:11434/v1' }, offline).name).toBe('gpt-4.1-mini')
})
