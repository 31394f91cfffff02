/** A model over HTTP, from what is its provider's own: the address, the headers, the body of a request and the reader of a response. */
import type { JsonObject } from '@rivulet/protocol'
import type { ModelLimits } from '../model/limits.ts'
import type { Model, ModelRequest } from '../model/model.ts'
import type { ResponseWriter } from '../model/response-writer.ts'
import { withWireNames } from '../model/tool-names.ts'
import { type ProviderOptions, providerCall, streamSettings } from './provider-options.ts'
import { type ResponseReader, streamResponse } from './provider-stream.ts'

export type Provider = {
  baseUrl: string
  path: string
  headers: Record<string, string>
  body: (request: ModelRequest) => JsonObject
  createReader: (writer: ResponseWriter, limits: ModelLimits) => ResponseReader
}

export function providerModel(options: ProviderOptions, { baseUrl, path, headers, body, createReader }: Provider): Model {
  const { model } = options
  const url = `${baseUrl.replace(/\/+$/, '')}${path}`
  const settings = streamSettings(options)
  return {
    name: model,
    stream: (given, { turn, signal = turn?.signal, traceparent = turn?.span.traceparent } = {}) => {
      const { request, nameOf } = withWireNames(given)
      return streamResponse({
        ...settings,
        ...{ model, signal, nameOf },
        call: () => providerCall(options, url, { ...headers, ...(traceparent && { traceparent }) }, body(request)),
        createReader: writer => createReader(writer, settings.limits),
      })
    },
  }
}
