import { Code, ConnectError, type Interceptor } from "@connectrpc/connect";
import type { Metrics } from "./metrics.ts";

/** Measures every call on every protocol: how long until its answer, and with what code. Goes outermost. */
export function measure(metrics: Pick<Metrics, "handled">): Interceptor {
  return (next) => async (request) => {
    const start = performance.now();
    let code = "ok";
    try {
      return await next(request);
    } catch (error) {
      code = CODES.get(ConnectError.from(error).code) ?? "unknown";
      throw error;
    } finally {
      metrics.handled(request.method.name, code, (performance.now() - start) / 1000);
    }
  };
}

/** The codes as the Connect protocol spells them. */
const CODES = new Map(
  Object.entries(Code).flatMap(([name, code]) =>
    typeof code === "number" ? [[code, name.replace(/(?<=.)[A-Z]/g, "_$&").toLowerCase()] as const] : [],
  ),
);
