/** Lets Node run TypeScript: `node --import rivulet/typescript`. */
import { register } from 'tsx/esm/api'

register()
