/** Loaded before a program (`--import`): an OpenTelemetry SDK that sends each span to OTEL_EXPORTER_OTLP_ENDPOINT as soon as it ends. */
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-http'
import { NodeTracerProvider, SimpleSpanProcessor } from '@opentelemetry/sdk-trace-node'

const provider = new NodeTracerProvider()
provider.addSpanProcessor(new SimpleSpanProcessor(new OTLPTraceExporter()))
provider.register()
