/** Ways to spoil a good request: values of another kind, fields too many or too few, and malformed JSON. */
import fc from 'fast-check'

/** Stands in every text that is sent: whatever comes back with it was echoed. As a key it is never alone: plain names of fields are said back. */
export const marker = 'zqxj'

export const text: fc.Arbitrary<string> = fc
  .oneof(
    fc.constant(''),
    fc.string({ unit: 'binary', maxLength: 12 }),
    fc.constantFrom('\u001b[31m', '\r\nset-cookie: a', '<script>', "'; drop table tasks --", '😀', '{}'),
  )
  .map(rest => `${marker} ${rest}`)

/** What fits nowhere, or almost. */
export const oddity: fc.Arbitrary<unknown> = fc.oneof(
  fc.constantFrom(null, true, false, 0, -0, -1, 1.5, 2 ** 31, 2 ** 53, 2 ** 63, 1e308, -1e308, 5e-324),
  fc.constantFrom(
    '',
    ' ',
    '5',
    'true',
    'null',
    '0-0',
    '1-1',
    'NaN',
    `${marker}\0`,
    `${marker}\ud800`,
    `\udfff${marker}`,
    marker.repeat(3_000),
  ),
  fc.constantFrom([], {}, [[]], Array(20).fill(marker), JSON.parse(`{"__proto__":{"${marker}":1}}`), {
    constructor: { prototype: { [marker]: 1 } },
  }),
  fc.integer({ min: 60, max: 200 }).map(depth => JSON.parse(`${'['.repeat(depth)}${']'.repeat(depth)}`)),
  fc.constant(Array(10_001).fill(0)),
  text,
)

/** Names that no schema has, and that a path must not say back. */
const oddKey = fc.constantFrom(
  `${marker}<b>`,
  `${marker} ${marker}`,
  '',
  '__proto__',
  'toString',
  `${marker}\0`,
  `~${marker}/`,
  `${marker}`.repeat(40),
)

type Spoil = { at: number; how: 'replace' | 'remove' | 'add' | 'wrap'; odd: unknown; key: string }

const spoil: fc.Arbitrary<Spoil> = fc.record({
  at: fc.nat(),
  how: fc.constantFrom('replace', 'replace', 'remove', 'add', 'wrap'),
  odd: oddity,
  key: oddKey,
})

/** Now and then as it was. */
export function spoiled(value: fc.Arbitrary<unknown>): fc.Arbitrary<unknown> {
  return fc
    .tuple(value, fc.oneof(fc.constant([]), fc.array(spoil, { minLength: 1, maxLength: 2 })))
    .map(([good, spoils]) => spoils.reduce<unknown>(apply, good))
}

function apply(value: unknown, { at, how, odd, key }: Spoil): unknown {
  const root = { value: structuredClone(value) } as Record<string, unknown>
  const places = placesIn(root)
  const place = places[at % places.length]
  if (!place) return value
  const { holder, name } = place
  if (how === 'remove' && holder !== root) delete holder[name]
  else if (how === 'wrap') holder[name] = [holder[name]]
  else if (how === 'add' && typeof holder[name] === 'object' && holder[name] !== null) define(holder[name] as object, key, odd)
  else holder[name] = odd
  return root.value
}

/** Every field and item, wherever it is. */
export function placesIn(holder: Record<string, unknown>): { holder: Record<string, unknown>; name: string }[] {
  return Object.keys(holder).flatMap(name => {
    const child = holder[name]
    const deeper = typeof child === 'object' && child !== null ? placesIn(child as Record<string, unknown>) : []
    return [{ holder, name }, ...deeper]
  })
}

/** Not by assignment: `__proto__` is to be a key. */
function define(holder: object, key: string, value: unknown): void {
  Object.defineProperty(holder, key, { value, enumerable: true, configurable: true, writable: true })
}

/** The JSON of a value, as it is or spoiled as text. */
export function spoiledJson(value: fc.Arbitrary<unknown>): fc.Arbitrary<Buffer> {
  const cut = fc.record({ from: fc.nat(), length: fc.integer({ min: 1, max: 8 }) })
  const how = fc.oneof(
    { weight: 12, arbitrary: fc.constant((json: string) => Buffer.from(json)) },
    {
      weight: 1,
      arbitrary: cut.map(
        ({ from }) =>
          (json: string) =>
            Buffer.from(json.slice(0, from % (json.length + 1))),
      ),
    },
    {
      weight: 1,
      arbitrary: cut.map(
        ({ from, length }) =>
          (json: string) =>
            Buffer.from(without(json, from % (json.length + 1), length)),
      ),
    },
    {
      weight: 1,
      arbitrary: fc.tuple(fc.nat(), fc.uint8Array({ minLength: 1, maxLength: 6 })).map(([at, bytes]) => (json: string) => {
        const whole = Buffer.from(json)
        return Buffer.concat([whole.subarray(0, at % (whole.length + 1)), bytes, whole.subarray(at % (whole.length + 1))])
      }),
    },
    {
      weight: 1,
      arbitrary: fc
        .constantFrom(
          `{"agent":"${marker}","agent":"idle",`,
          '{"priority":1e400,',
          '{"delayMs":9007199254740993,',
          `{"\\u0000${marker}":1,`,
          '\ufeff{',
          '[{',
          '{"a":0x10,',
        )
        .map(start => (json: string) => Buffer.from(json.replace('{', start))),
    },
    { weight: 1, arbitrary: fc.constantFrom('', '{', 'null', '[]', '""', marker, `"${marker}"`).map(json => () => Buffer.from(json)) },
  )
  return fc.tuple(value, how).map(([good, spoilText]) => spoilText(JSON.stringify(good) ?? ''))
}

function without(text: string, from: number, length: number): string {
  return text.slice(0, from) + text.slice(from + length)
}
