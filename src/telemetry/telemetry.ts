/** What the rest of the service knows of OpenTelemetry: nothing of its libraries, which start.ts alone loads. */
import type { Interceptor } from "@connectrpc/connect";
import type { Handler } from "../listener/exchange.ts";
import type { SessionStore } from "../session/ports.ts";

export type Telemetry = {
  /** Spans of calls; the first interceptors. */
  readonly interceptors: readonly Interceptor[];
  /** Spans of HTTP requests, with the context that their callers sent. */
  traceRequests(handler: Handler): Handler;
  /** Spans of commands, where the call that makes them is recorded. */
  traceStore(store: SessionStore, kind: "embedded" | "redis"): SessionStore;
  /** The id of the trace that the current request belongs to. */
  traceId(): string | undefined;
  /** Exports what waits, for a bounded time. */
  shutdown(): Promise<void>;
};
