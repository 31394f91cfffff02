/** How a turn uses the values above its task: those of its customer, its agent and its tenant. */
import { type StoreCall, type StoreCallResult, storeScopeSchema } from '@rivulet/contract/store'
import { mergePatch, RivuletError, type TurnId } from '@rivulet/protocol'
import type { Transaction } from '../../../store/connection/database.ts'
import { type Tenant, taskNotFound } from '../../../store/connection/tenant.ts'
import { changeValue, findValue, listValues, removeValue, scopesOf } from '../../../store/memory/memory.ts'
import { lockHeldTurn } from '../../../store/turns/held-turn.ts'
import type { Services } from '../../services.ts'
import type { Call, HeldTurns } from './held-turns.ts'

type ValueCall = Exclude<StoreCall, { action: 'list' }>

export function createStoreCalls({ db, databaseFor, listsFor, config, metrics }: Services, { requireHeldTask }: HeldTurns) {
  const { limits, maxStoreBytes: maxBytes } = config
  return useStore

  async function useStore(request: Call<{ turnId: TurnId; claimId: string; call: StoreCall }>): Promise<StoreCallResult> {
    const { turnId, claimId, call } = request.body
    const { task, tenant } = await requireHeldTask(request, turnId, claimId)
    const scope = (await scopesOf(db, task))[call.scope]
    if (scope === null) throw new RivuletError('validation_failed', 'The task of this turn has no concurrencyKey, so it has no customer')
    if (!storeScopeSchema.safeParse(scope).success)
      throw new RivuletError('validation_failed', 'The concurrencyKey of this task is too long to name a customer of the store')
    const own = { tenant, scope }
    if (call.action === 'list') return listsFor(tenant).transaction(tx => listValues(tx, own, call, limits.pageBytes))
    return databaseFor(tenant).transaction(async tx => {
      const result = await useScope(tx, own, call)
      // Last, because a heartbeat does not renew the lease of a turn that is locked, and a change may wait for others of its scope.
      if (call.action !== 'get' && !(await lockHeldTurn(tx, turnId, claimId))) {
        metrics.fenced.inc({ write: 'store' })
        request.log.warn({ task, turnId, scope }, 'a worker tried to store a value for a turn that it no longer holds')
        throw taskNotFound()
      }
      return result
    })
  }

  async function useScope(tx: Transaction, own: { tenant: Tenant; scope: string }, call: ValueCall): Promise<StoreCallResult> {
    const place = { ...own, key: call.key }
    switch (call.action) {
      case 'get':
        return { stored: await findValue(tx, place) }
      case 'put':
        return changeValue(tx, place, { newValue: () => call.value, ...termsOf(call) })
      case 'patch':
        return changeValue(tx, place, { newValue: stored => mergePatch(stored ?? null, call.value), ...termsOf(call) })
      case 'remove':
        // A repeated call finds nothing to remove.
        if (await findValue(tx, place)) await removeValue(tx, place, termsOf(call).accepts)
        return { stored: null }
      default:
        throw call satisfies never
    }
  }

  function termsOf({ version, change = null }: { version?: number | undefined; change?: string | null | undefined }) {
    return { accepts: (stored: number) => version === undefined || stored === version, change, maxBytes }
  }
}
