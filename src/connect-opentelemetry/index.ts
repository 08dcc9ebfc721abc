/** OpenTelemetry tracing for servers and clients on connect-es. */
export {
  type ServerTracingOptions,
  type TracingOptions,
  tracingClientInterceptor,
  tracingServerInterceptor,
} from "./interceptors.ts";
