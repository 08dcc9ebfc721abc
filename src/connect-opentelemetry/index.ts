/** OpenTelemetry tracing for servers and clients on connect-es. */
export { type TracingOptions, tracingClientInterceptor, tracingServerInterceptor } from "./interceptors.ts";
