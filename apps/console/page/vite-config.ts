/** How the console is put together, for the build and for the server of `npm run dev`. */
import { fileURLToPath } from 'node:url'
import tailwind from '@tailwindcss/vite'
import react from '@vitejs/plugin-react'
import type { InlineConfig } from 'vite'

const folder = fileURLToPath(new URL('..', import.meta.url))

const sharedParts = /console\/src\/(shell\/(elements|hooks|forms\/field)|shell\/[\w-]+\.ts$|tasks\/task-title|agents\/use-agents)/

export const viteConfig: InlineConfig = {
  root: folder,
  configFile: false,
  logLevel: 'warn',
  plugins: [react(), tailwind()],
  // Vite inlines nothing as a data: URL, so every asset is a file.
  build: {
    outDir: 'dist',
    emptyOutDir: true,
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    chunkSizeWarningLimit: 1_000,
    // What several pages share is one file, not a dozen small ones, each with a request and headers of its own.
    rolldownOptions: { output: { codeSplitting: { groups: [{ name: 'shared', test: sharedParts }] } } },
  },
}
