/** Where the code of the lease thread is. Builds replace this module by one that holds the code, because a bundle has no files beside it. */
export const threadUrl = new URL('./thread.mjs', import.meta.url)
