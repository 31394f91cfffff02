/** The store of a test: the values of one customer, one agent and one tenant. */
import { type StoreCall, type StoreCallResult, type StoredValue, storeCallSchema, type TurnScope } from '@rivulet/contract/store'
import { type Json, maxStoreValueBytes, mergePatch, RivuletError } from '@rivulet/protocol'
import type { UseStore } from '../turn/turn-store.ts'

export type TestStore = Partial<Record<TurnScope, Readonly<Record<string, Json>>>>

export class MemoryStore {
  readonly #values = new Map<string, StoredValue>()
  #version = 0

  constructor(store: TestStore = {}) {
    for (const [scope, values] of Object.entries(store)) for (const [key, value] of Object.entries(values)) this.#set(scope, key, value)
  }

  readonly use: UseStore = async call => this.#use(storeCallSchema.parse(call))

  /** As they would be stored. */
  values(): TestStore {
    const values: Record<string, Record<string, Json>> = {}
    for (const { scope, key, value } of this.#values.values()) values[scope] = { ...values[scope], [key]: value }
    return values
  }

  #use(call: StoreCall): StoreCallResult {
    if (call.action === 'list') return this.#list(call)
    const stored = this.#values.get(placeOf(call.scope, call.key)) ?? null
    if (call.action === 'get') return { stored }
    if (call.version !== undefined && call.version !== (stored?.version ?? 0))
      throw new RivuletError('precondition_failed', `The value has version ${stored?.version ?? 0}`)
    if (call.action === 'remove') this.#values.delete(placeOf(call.scope, call.key))
    if (call.action === 'remove') return { stored: null }
    const value = call.action === 'put' ? call.value : mergePatch(stored?.value ?? null, call.value)
    return { stored: this.#set(call.scope, call.key, value) }
  }

  #set(scope: string, key: string, value: Json): StoredValue {
    if (Buffer.byteLength(JSON.stringify(value)) > maxStoreValueBytes)
      throw new RivuletError('value_too_large', `A stored value has at most ${maxStoreValueBytes} bytes as JSON`)
    this.#version += 1
    const stored = { scope, key, value: structuredClone(value), version: this.#version, updatedAt: new Date().toISOString() }
    this.#values.set(placeOf(scope, key), stored)
    return stored
  }

  #list({ scope, prefix = '', q, limit, cursor }: StoreCall & { action: 'list' }) {
    const words = q?.toLowerCase().split(/\s+/) ?? []
    const found = [...this.#values.values()]
      .filter(stored => stored.scope === scope && stored.key.startsWith(prefix) && (cursor === undefined || stored.key > cursor))
      .filter(({ key, value }) => words.every(word => `${key} ${JSON.stringify(value)}`.toLowerCase().includes(word)))
      .toSorted((a, b) => (a.key < b.key ? -1 : 1))
    const data = found.slice(0, limit)
    return { data, nextCursor: found.length > limit ? (data.at(-1)?.key ?? null) : null }
  }
}

function placeOf(scope: string, key: string): string {
  return `${scope} ${key}`
}
