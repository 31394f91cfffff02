import { expect, test } from 'vitest'
import { chooseModel } from './model-choice.ts'

test('the model is the configured provider, or a script without a configured provider', () => {
  const offline = () => 'hello'
  expect(chooseModel({}, offline).name).toBe('scripted')
  expect(chooseModel({ apiKey: 'k', model: 'm' }, offline).name).toBe('m')
  expect(chooseModel({ baseUrl: 'http://127.0.0.1:11434/v1' }, offline).name).toBe('gpt-4.1-mini')
})
