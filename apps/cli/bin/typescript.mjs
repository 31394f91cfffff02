/** Lets Node run TypeScript: `node --import @rivulet/cli/typescript`. */
import { register } from 'tsx/esm/api'

register()
