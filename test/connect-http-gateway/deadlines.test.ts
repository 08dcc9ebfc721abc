/** How a deadline is reported that has expired at the upstream. */
import { Code, ConnectError, type Transport } from "@connectrpc/connect";
import { describe, expect, test } from "vitest";
import { createFetchHandler } from "../../src/connect-http-routes/index.ts";
import { RelayServiceRoutes } from "../connect-http-routes/gen/relay/v1/relay_http.ts";

/** Returns a transport whose calls block the event loop until their deadline, and then fail before any timer can fire. */
function failLate(error: ConnectError): Transport {
  const fail = async (_method: unknown, _signal: unknown, timeoutMs = 0) => {
    const endMs = performance.now() + timeoutMs;
    while (performance.now() < endMs);
    throw error;
  };
  return { unary: fail, stream: fail } as unknown as Transport;
}

/** Returns a transport whose calls fail at once. */
function failEarly(error: ConnectError): Transport {
  const fail = async () => {
    throw error;
  };
  return { unary: fail, stream: fail } as unknown as Transport;
}

const fromWire = (code: Code) => Object.assign(new ConnectError("of the upstream", code), { isWireError: true });
const ERRORS: readonly [name: string, error: () => ConnectError, early: number][] = [
  ["a reset stream", () => new ConnectError("reset", Code.Canceled), 503],
  ["a lost connection", () => new ConnectError("lost", Code.Unavailable), 503],
  ["the status CANCELLED", () => fromWire(Code.Canceled), 499],
  ["the status UNAVAILABLE", () => fromWire(Code.Unavailable), 503],
  ["the status NOT_FOUND", () => fromWire(Code.NotFound), 404],
];

describe.each([
  ["a unary call", "/v1/items/a"],
  ["a stream", "/v1/counts/a"],
])("%s that fails", (_name, path) => {
  const statusOf = async (transport: Transport, timeoutMs: number) => {
    const handler = createFetchHandler({ tables: [RelayServiceRoutes], transport });
    const headers = { "connect-timeout-ms": String(timeoutMs) };
    return (await handler(new Request(`http://x${path}`, { headers }))).status;
  };

  test.each(ERRORS)("after its deadline is 504, before it is what it is: %s", async (_, error, early) => {
    expect(await statusOf(failLate(error()), 20)).toBe(504);
    expect(await statusOf(failEarly(error()), 1_000_000)).toBe(early);
  });
});
