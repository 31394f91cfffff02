/**
 * Runs the bundle that its first argument names, a script, with the code that V8 compiled for a process of the same bundle before: a start then takes
 * a third less CPU. The first process that has run for a while stores its code, so that the functions a start calls are part of it.
 *
 * V8 checks that the code is of this version, with these options, and compiles the bundle otherwise. A bundle that imports modules by their paths cannot be
 * run by this: Node 20 has no callback for the imports of a script with stored code.
 */
const { readFileSync, renameSync, writeFileSync } = require('node:fs')
const { createRequire } = require('node:module')
const { dirname } = require('node:path')
const { Script } = require('node:vm')

/** By then it has started, also on a busy machine. */
const storeAfterMs = 5_000

// As if the bundle had been started itself.
process.argv.splice(1, 1)
const [, bundle] = process.argv
const stored = `${bundle}.cache`
const cachedData = read()
const script = new Script(`(function (exports, require, module, __filename, __dirname) {${readFileSync(bundle, 'utf8')}\n})`, {
  filename: bundle,
  ...(cachedData && { cachedData }),
})
const program = { exports: {} }
script.runInThisContext()(program.exports, createRequire(bundle), program, bundle, dirname(bundle))
// Options of a process of its own kind would make its code useless to the others.
if (!cachedData && process.execArgv.length === 0 && !process.env.NODE_OPTIONS) setTimeout(store, storeAfterMs).unref()

function read() {
  try {
    return readFileSync(stored)
  } catch {
    return undefined
  }
}

function store() {
  if (read()) return
  const unfinished = `${stored}.${process.pid}`
  try {
    writeFileSync(unfinished, script.createCachedData())
    renameSync(unfinished, stored)
  } catch {
    // The run is over, and its folder is gone.
  }
}
