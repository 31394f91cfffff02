/** The signature, by vectors of another implementation (aws4fetch 1.0.20): the S3 server of the other tests does not verify it. */
import { expect, test } from 'vitest'
import { sign } from './s3-request.ts'

const settings = {
  region: 'eu-central-1',
  accessKeyId: 'AKIAIOSFODNN7EXAMPLE',
  secretAccessKey: 'wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY',
}

test.each([
  [
    'PUT',
    'https://storage.example.com/bucket/acme/0198a3a0-0000-7000-8000-000000000000',
    'a54709a5454585e555394871b3a9c675121ff1bf61f6d4a3bf06c1df2b706ffb',
  ],
  ['POST', 'https://storage.example.com:9000/bucket/acme/x?uploads=', 'cb7883515f2afac8c3a8b0a5bc1c94492a6758b6fbc1acb9dcac29a6f39a551e'],
  [
    'PUT',
    'https://bucket.s3.eu-central-1.amazonaws.com/a/x?partNumber=2&uploadId=a%2Bb%2F~c',
    '2efbab4a1cea00965de714999d78135113f3652c74bd8a903759e1239d2f0f17',
  ],
])('of %s %s is the one that S3 computes', (method, url, signature) => {
  const { authorization } = sign(method, new URL(url), settings, new Date('2026-11-16T07:45:00Z'))
  expect(authorization).toBe(
    `AWS4-HMAC-SHA256 Credential=AKIAIOSFODNN7EXAMPLE/20261116/eu-central-1/s3/aws4_request, SignedHeaders=host;x-amz-content-sha256;x-amz-date, Signature=${signature}`,
  )
})
