import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { collect, folded, lines } from '../../test/collect.ts'
import { user } from '../model/conversation.ts'
import { call, callText, fail, type Script, type ScriptFactory, type ScriptStep, say, think, wait } from './script.ts'
import { type ScriptedModelOptions, scriptedModel } from './scripted-model.ts'

const asking = { messages: [user('hi')] }

describe('a scripted model', () => {
  test('emits a text character by character, and each call as a start and one delta', async () => {
    const { updates, result } = await play([[say('Grüß 🌍'), call('f', { x: 1 }, 'a'), call('g', {}, 'b')]], { chunks: 'characters' })
    expect(updates.map(update => (update.type === 'delta' && 'text' in update.delta ? update.delta.text : update.type))).toEqual([
      'start',
      ...['G', 'r', 'ü', 'ß', ' ', '🌍'],
      'done',
      'start',
      '{"x":1}',
      'done',
      'start',
      '{}',
      'done',
    ])
    expect(result).toMatchObject({ text: 'Grüß 🌍', stopReason: 'tool_use', toolCalls: [{ callId: 'a' }, { callId: 'b' }] })
  })

  test('can emit word by word', async () => {
    const { updates } = await play(['One two,\n\nthree. '], { chunks: 'words' })
    expect(updates.flatMap(update => (update.type === 'delta' && 'text' in update.delta ? [update.delta.text] : []))).toEqual([
      'One',
      ' two,',
      '\n\nthree. ',
    ])
  })

  test('never cuts within a character, and loses none, whatever the seed', async () => {
    await fc.assert(
      fc.asyncProperty(fc.string({ unit: 'grapheme' }), fc.integer(), async (words, seed) => {
        const { updates, result } = await play([[say(words), callText('f', JSON.stringify({ words }))]], { seed })
        expect(result?.text).toBe(words.toWellFormed())
        for (const update of updates) {
          if (update.type === 'delta' && 'text' in update.delta) expect(update.delta.text.isWellFormed()).toBe(true)
        }
      }),
    )
  })

  test('emits the same for the same seed, and cuts elsewhere for another', async () => {
    const script = [[think('I wonder about that.'), say('A rather long sentence, to be cut.'), call('f', { a: 'value' })]]
    const once = await play(script, { seed: 7 })
    expect((await play(script, { seed: 7 })).updates).toEqual(once.updates)
    const other = await play(script, { seed: 8 })
    expect(other.updates).not.toEqual(once.updates)
    expect(other.result?.text).toBe(once.result?.text)
  })

  test('uses one step per call, calls step functions, counts the calls, and fails when the script has no more steps', async () => {
    const model = scriptedModel(['one', ({ messages }, number) => `${messages.length} messages, call ${number}`])
    expect(model.calls).toBe(0)
    expect((await model.stream(asking).result).text).toBe('one')
    expect((await model.stream(asking).result).text).toBe('1 messages, call 2')
    const { error } = await collect(model.stream(asking))
    expect(error).toMatchObject({ message: 'The script has 2 steps, but this is call 3 of the model' })
    expect(model.calls).toBe(3)
  })

  test('can be a function of the request, and stop with any reason and usage', async () => {
    const model = scriptedModel(() => ({ parts: [say('cut')], stopReason: 'length', usage: { outputTokens: 1 } }))
    expect(await model.stream(asking).result).toMatchObject({ stopReason: 'length', usage: { outputTokens: 1 } })
  })

  test('can fail half-way, and keeps the partial output', async () => {
    const { updates, error } = await play([[say('Half'), fail('out of luck')]])
    expect(lines(updates)).toEqual(['0 start text', '0 text Half', '0 done failed error'])
    expect(error).toMatchObject({ message: 'out of luck', partial: { text: 'Half' } })
    expect((await play([() => Promise.reject(new Error('no idea'))])).error).toMatchObject({ message: 'no idea' })
  })
})

describe('an abort', () => {
  test('before the start does not count as a call', async () => {
    const model = scriptedModel(['never'])
    const { updates } = await collect(model.stream(asking, { signal: AbortSignal.abort() }))
    expect(lines(updates)).toEqual(['0 start text', '0 done aborted aborted'])
    expect(model.calls).toBe(0)
  })

  test.each([
    ['while a step function runs', () => new Promise<never>(() => {}), ''],
    ['during a pause', [say('Half'), wait(60_000), say(' more')], 'Half'],
    ['within a text', [say('Half'), say('x'.repeat(100_000))], null],
    ['within arguments', [say('Half'), callText('f', `"${'x'.repeat(100_000)}"`)], 'Half'],
  ] satisfies [string, ScriptStep | ScriptFactory, string | null][])(
    '%s keeps the partial output, and closes it',
    async (_, step, expected) => {
      const abort = new AbortController()
      const stream = scriptedModel([step]).stream(asking, { signal: abort.signal })
      setTimeout(() => abort.abort(), 5)
      const updates = []
      for await (const update of stream) {
        updates.push(update)
        if (updates.length > 20) abort.abort()
      }
      const result = await stream.result
      expect(result.stopReason).toBe('aborted')
      if (expected !== null) expect(result.text).toBe(expected)
      expect(folded(updates).every(({ status }) => status !== 'streaming')).toBe(true)
      expect(folded(updates).at(-1)).toMatchObject({ stopReason: 'aborted' })
    },
  )

  test('does not affect the next call', async () => {
    const model = scriptedModel([[wait(60_000)], 'again'])
    const abort = new AbortController()
    const first = model.stream(asking, { signal: abort.signal })
    abort.abort()
    expect((await first.result).stopReason).toBe('aborted')
    expect((await model.stream(asking).result).text).toBe('again')
  })
})

function play(script: Script, options: ScriptedModelOptions = {}) {
  return collect(scriptedModel(script, options).stream(asking))
}
