/** Must be loaded before anything that parses: the page's policy forbids making code out of text, and trying it is reported as a violation. */
const settings = globalThis as { __zod_globalConfig?: { jitless: boolean } }
settings.__zod_globalConfig = { jitless: true }
