import { BadInput } from "../codec/bad-input.ts";
import type { HeaderMap } from "./header-map.ts";

const UNITS_MS: Readonly<Record<string, number>> = { H: 3_600_000, M: 60_000, S: 1_000, m: 1, u: 1e-3, n: 1e-6 };

/**
 * Reads the timeout of a call, in milliseconds, from `Connect-Timeout-Ms` (milliseconds), `Grpc-Timeout` (up to eight
 * digits and a unit) or `X-Server-Timeout` (seconds). undefined: no timeout.
 * @param maxMs the longest timeout allowed, as `maxTimeoutMs` in connect-es
 * @throws BadInput
 */
export function readTimeout(headers: HeaderMap, maxMs: number): number | undefined {
  for (const [name, parse] of PARSERS) {
    const value = headers.get(name);
    if (value === null) continue;
    const timeoutMs = parse(value);
    if (timeoutMs === undefined) throw new BadInput("header", name, `invalid timeout "${value}"`);
    if (timeoutMs > maxMs) throw new BadInput("header", name, `timeout ${timeoutMs}ms must be <= ${maxMs}`);
    return timeoutMs;
  }
  return undefined;
}

const PARSERS: readonly (readonly [name: string, parse: (value: string) => number | undefined])[] = [
  ["connect-timeout-ms", (value) => (/^\d{1,10}$/.test(value) ? Number(value) : undefined)],
  [
    "grpc-timeout",
    (value) => {
      const [, digits, unit] = /^(\d{1,8})([HMSmun])$/.exec(value) ?? [];
      return digits === undefined ? undefined : Number(digits) * (UNITS_MS[unit ?? ""] ?? 0);
    },
  ],
  ["x-server-timeout", (value) => (/^\d{1,10}(?:\.\d{1,9})?$/.test(value) ? Number(value) * 1_000 : undefined)],
];
