/**
 * Loaded into a process before its program (`--import`): its wall clock is off by CLOCK_SHIFT_MS from the start. The monotonic clock and timers
 * are as they were, as on a machine whose time was set wrong.
 */
const shiftMs = Number(process.env.CLOCK_SHIFT_MS)
const trueNow = Date.now
const shiftedNow = () => trueNow() + shiftMs

globalThis.Date = new Proxy(Date, {
  apply: target => new target(shiftedNow()).toString(),
  construct: (target, args, made) => Reflect.construct(target, args.length > 0 ? args : [shiftedNow()], made),
  get: (target, name) => (name === 'now' ? shiftedNow : Reflect.get(target, name)),
})
