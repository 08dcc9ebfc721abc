import type { ConnectError } from "@connectrpc/connect";
import { parseTimeout as parseConnectTimeout } from "@connectrpc/connect/protocol-connect";
import { parseTimeout as parseGrpcTimeout } from "@connectrpc/connect/protocol-grpc";
import { BadInput } from "../codec/bad-input.ts";
import type { HeaderMap } from "./header-map.ts";

type Parsed = {
  readonly timeoutMs?: number | undefined;
  readonly error?: Pick<ConnectError, "rawMessage"> | undefined;
};

/**
 * Reads the timeout of a call, in milliseconds, from `Connect-Timeout-Ms` (milliseconds), `Grpc-Timeout` (up to eight digits and a unit)
 * or `X-Server-Timeout` (seconds). Returns undefined if there is none.
 * @param maxMs the longest timeout allowed, as `maxTimeoutMs` in connect-es
 * @throws BadInput
 */
export function readTimeout(headers: HeaderMap, maxMs: number): number | undefined {
  for (const [name, parse] of PARSERS) {
    const value = headers.get(name);
    if (value === null) continue;
    const { timeoutMs, error } = parse(value, maxMs);
    if (error !== undefined) throw new BadInput("header", name, error.rawMessage);
    return timeoutMs;
  }
  return undefined;
}

/** The parsers of connect-es for its own headers, and a parser for the header of Google's API gateways. */
const PARSERS: readonly (readonly [name: string, parse: (value: string, maxMs: number) => Parsed])[] = [
  ["connect-timeout-ms", parseConnectTimeout],
  ["grpc-timeout", parseGrpcTimeout],
  ["x-server-timeout", parseServerTimeout],
];

function parseServerTimeout(value: string, maxMs: number): Parsed {
  if (!/^\d{1,10}(?:\.\d{1,9})?$/.test(value)) return { error: { rawMessage: `invalid timeout "${value}"` } };
  const timeoutMs = Number(value) * 1_000;
  return timeoutMs > maxMs ? { error: { rawMessage: `timeout ${timeoutMs}ms must be <= ${maxMs}` } } : { timeoutMs };
}
