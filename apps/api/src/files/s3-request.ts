/**
 * Requests to an S3-compatible server, signed with AWS Signature Version 4, which all of them take. Bodies and responses are streams. Only what the store
 * needs: the AWS SDK would be larger than the rest of the API.
 */
import { createHash, createHmac } from 'node:crypto'
import { request as httpRequest, type IncomingMessage } from 'node:http'
import { request as httpsRequest } from 'node:https'
import { RivuletError } from '@rivulet/protocol'

export type S3Settings = {
  /** Of the bucket: `https://bucket.s3.eu-central-1.amazonaws.com`, or `https://storage.example.com/bucket`; a folder may follow. */
  url: string
  region: string
  accessKeyId: string
  secretAccessKey: string
}

export type S3Request = {
  method: 'GET' | 'PUT' | 'POST' | 'DELETE'
  /** Below the URL of the bucket, without a slash at its beginning. */
  path: string
  query?: Record<string, string>
  headers?: Record<string, string>
  /** `size` is its length: S3 takes no body of unknown length. */
  body?: { bytes: AsyncIterable<Buffer> | Buffer; size: number }
}

/** A server that is silent for so long is taken for gone. Shorter than an upload may be silent (`abandonedMs`). */
const silentMs = 30_000

type SendToS3 = (request: S3Request) => Promise<IncomingMessage>

/** Resolves with the head of a response, of any status; its body is to be read or dumped. Rejects if the server cannot be reached. */
export function createS3Requests(settings: S3Settings): SendToS3 {
  const base = new URL(settings.url.replace(/\/*$/, '/'))
  return send

  async function send({ method, path, query = {}, headers = {}, body }: S3Request): Promise<IncomingMessage> {
    const url = new URL(path.split('/').map(encode).join('/'), base)
    url.search = canonicalQuery(query)
    const signed = sign(method, url, settings, new Date())
    const open = url.protocol === 'https:' ? httpsRequest : httpRequest
    const length = body || method === 'POST' || method === 'PUT' ? { 'content-length': String(body?.size ?? 0) } : {}
    const request = open(url, { method, headers: { ...headers, ...length, ...signed }, timeout: silentMs })
    const answered = new Promise<IncomingMessage>((resolve, reject) => {
      request.on('response', resolve).on('error', reject)
      request.on('timeout', () => request.destroy(new Error('The file store did not respond')))
    })
    // The response may come before the end of the body, and so may the error.
    answered.catch(() => {})
    try {
      if (body) await write(body.bytes)
      request.end()
    } catch (error) {
      request.destroy()
      throw error
    }
    return answered.catch(unavailable)

    async function write(bytes: AsyncIterable<Buffer> | Buffer): Promise<void> {
      for await (const piece of Buffer.isBuffer(bytes) ? [bytes] : bytes) {
        // Until the kernel has it: the next piece uses the same memory.
        const written = new Promise<void>((resolve, reject) => request.write(piece, error => (error ? reject(error) : resolve())))
        await Promise.race([written, answered.then(() => written)]).catch(unavailable)
      }
    }
  }
}

export function unavailable(cause: unknown): never {
  throw new RivuletError('dependency_unavailable', 'The store of files is unavailable; retry', { cause })
}

/** The headers of a request that is made now. The payload is not signed: it is a stream, and the API verifies checksums itself. */
export function sign(
  method: string,
  url: URL,
  { region, accessKeyId, secretAccessKey }: Omit<S3Settings, 'url'>,
  now: Date,
): Record<string, string> {
  const time = now.toISOString().replace(/[-:]|\.\d+/g, '')
  const headers = { host: url.host, 'x-amz-content-sha256': 'UNSIGNED-PAYLOAD', 'x-amz-date': time }
  const names = Object.keys(headers).join(';')
  const lines = Object.entries(headers).map(([name, value]) => `${name}:${value}\n`)
  const canonical = [method, url.pathname, url.search.slice(1), lines.join(''), names, 'UNSIGNED-PAYLOAD'].join('\n')
  const scope = [time.slice(0, 8), region, 's3', 'aws4_request']
  const text = ['AWS4-HMAC-SHA256', time, scope.join('/'), createHash('sha256').update(canonical).digest('hex')].join('\n')
  const key = scope.reduce<string | Buffer>((secret, part) => hmac(secret, part), `AWS4${secretAccessKey}`)
  const signature = hmac(key, text).toString('hex')
  return {
    ...headers,
    authorization: `AWS4-HMAC-SHA256 Credential=${accessKeyId}/${scope.join('/')}, SignedHeaders=${names}, Signature=${signature}`,
  }
}

function hmac(key: string | Buffer, text: string): Buffer {
  return createHmac('sha256', key).update(text).digest()
}

function canonicalQuery(query: Record<string, string>): string {
  const pairs = Object.entries(query).map(([name, value]) => `${encode(name)}=${encode(value)}`)
  return pairs.sort().join('&')
}

/** As the signature wants it: everything but `A-Z a-z 0-9 - _ . ~`. */
function encode(text: string): string {
  return encodeURIComponent(text).replace(/[!'()*]/g, char => `%${char.charCodeAt(0).toString(16).toUpperCase()}`)
}
