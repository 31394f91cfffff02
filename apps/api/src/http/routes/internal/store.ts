/** How a turn uses the values above its task: those of its customer, its agent and its tenant. */
import type { StoreCall, StoreCallResult } from '@rivulet/contract/store'
import { mergePatch, RivuletError, type TurnId } from '@rivulet/protocol'
import { changeValue, findValue, listValues, removeValue, scopesOf } from '../../../store/memory/memory.ts'
import type { Services } from '../../services.ts'
import type { Call, HeldTurns } from './held-turns.ts'

export function createStoreCalls({ db, databaseFor, config }: Services, { requireHeldTask }: HeldTurns) {
  const { limits, maxStoreBytes: maxBytes } = config
  return useStore

  async function useStore(request: Call<{ turnId: TurnId; claimId: string; call: StoreCall }>): Promise<StoreCallResult> {
    const { turnId, claimId, call } = request.body
    const { task, tenant } = await requireHeldTask(request, turnId, claimId)
    const scope = (await scopesOf(db, task))[call.scope]
    if (scope === null) throw new RivuletError('validation_failed', 'The task of this turn has no concurrencyKey, so it has no customer')
    if (call.action === 'list') return listValues(db, { tenant, scope }, call, limits.pageBytes)
    const place = { tenant, scope, key: call.key }
    const accepts = (version: number) => !('version' in call) || call.version === undefined || version === call.version
    switch (call.action) {
      case 'get':
        return { stored: await findValue(db, place) }
      case 'put':
        return databaseFor(tenant).transaction(tx => changeValue(tx, place, { newValue: () => call.value, accepts, maxBytes }))
      case 'patch':
        return databaseFor(tenant).transaction(tx =>
          changeValue(tx, place, { newValue: stored => mergePatch(stored ?? null, call.value), accepts, maxBytes }),
        )
      case 'remove':
        await databaseFor(tenant).transaction(tx => removeValue(tx, place, accepts))
        return { stored: null }
      default:
        throw call satisfies never
    }
  }
}
