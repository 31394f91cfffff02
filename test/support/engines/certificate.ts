/** A certificate for servers on this machine, signed by itself, so that it is its own authority. Node cannot make one; openssl can. */
import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'

export type Certificate = { key: string; cert: string; keyPath: string; path: string }

export const hasOpenssl = canRun()

export function createCertificate(folder: string): Certificate {
  const [keyPath, path] = [join(folder, 'key.pem'), join(folder, 'cert.pem')]
  const request = ['req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes', '-days', '1']
  const about = ['-subj', '/CN=localhost', '-addext', 'subjectAltName=DNS:localhost,IP:127.0.0.1', '-keyout', keyPath, '-out', path]
  execFileSync('openssl', [...request, ...about], { stdio: 'ignore' })
  return { key: readFileSync(keyPath, 'utf8'), cert: readFileSync(path, 'utf8'), keyPath, path }
}

function canRun(): boolean {
  try {
    execFileSync('openssl', ['version'], { stdio: 'ignore' })
    return true
  } catch {
    return false
  }
}
