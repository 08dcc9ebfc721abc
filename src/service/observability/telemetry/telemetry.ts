/** The interface of OpenTelemetry for the rest of the service. Only start.ts loads its libraries. */
import type { Interceptor } from "@connectrpc/connect";
import type { Handler } from "../../../platform/listener/exchange.ts";
import type { SessionStore } from "../../session/ports.ts";

export type Telemetry = {
  /** The interceptors that make spans of calls. They must come first. */
  readonly interceptors: readonly Interceptor[];
  /** Wraps a handler with spans of HTTP requests. They continue the traces that callers send. */
  traceRequests(handler: Handler): Handler;
  /** Wraps the store with spans of commands, for calls that are recorded. */
  traceStore(store: SessionStore, kind: "embedded" | "redis"): SessionStore;
  traceId(): string | undefined;
  /** Exports the waiting spans, within a bounded time. */
  shutdown(): Promise<void>;
};
