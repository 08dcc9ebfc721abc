/** Deadlines of callers of Connect, gRPC and gRPC-Web. */
import type { IncomingMessage } from "node:http";
import { parseTimeout as parseConnectTimeout } from "@connectrpc/connect/protocol-connect";
import { parseTimeout as parseGrpcTimeout } from "@connectrpc/connect/protocol-grpc";

/** The longest delay of a timer in ms, a number of 31 bits: 24 days. */
const MAX_TIMEOUT_MS = 2 ** 31 - 1;

const PARSERS = [
  ["connect-timeout-ms", parseConnectTimeout],
  ["grpc-timeout", parseGrpcTimeout],
] as const;

/** Removes a deadline that is too long for a timer: connect-es would take it for an expired one. */
export function dropFarDeadline({ headers }: Pick<IncomingMessage, "headers">): void {
  for (const [name, parse] of PARSERS) {
    const value = headers[name];
    if (typeof value !== "string") continue;
    const { timeoutMs = 0 } = parse(value, MAX_TIMEOUT_MS);
    if (timeoutMs > MAX_TIMEOUT_MS) delete headers[name];
  }
}
