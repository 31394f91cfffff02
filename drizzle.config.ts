import { defineConfig } from 'drizzle-kit'

export default defineConfig({ dialect: 'postgresql', schema: './apps/api/src/store/schema.ts', out: './migrations', casing: 'snake_case' })
