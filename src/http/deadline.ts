import { BadInput } from "./bad-input.ts";
import type { HeaderMap } from "./header-map.ts";

const units: Readonly<Record<string, number>> = { H: 3_600_000, M: 60_000, S: 1_000, m: 1, u: 1e-3, n: 1e-6 };

/**
 * The time that the caller gives the call, in milliseconds: `Connect-Timeout-Ms` (milliseconds), `Grpc-Timeout` (up to
 * eight digits and a unit), `X-Server-Timeout` (seconds). undefined: none.
 * @param maxMs the longest that is allowed, as connect-es's `maxTimeoutMs`
 * @throws BadInput
 */
export function readTimeout(headers: HeaderMap, maxMs: number): number | undefined {
  for (const [name, parse] of readers) {
    const value = headers.get(name);
    if (value === null) continue;
    const timeoutMs = parse(value);
    if (timeoutMs === undefined) throw new BadInput("header", name, `invalid timeout "${value}"`);
    if (timeoutMs > maxMs) throw new BadInput("header", name, `timeout ${timeoutMs}ms must be <= ${maxMs}`);
    return timeoutMs;
  }
  return undefined;
}

const readers: readonly (readonly [name: string, parse: (value: string) => number | undefined])[] = [
  ["connect-timeout-ms", (value) => (/^\d{1,10}$/.test(value) ? Number(value) : undefined)],
  [
    "grpc-timeout",
    (value) => {
      const [, digits, unit] = /^(\d{1,8})([HMSmun])$/.exec(value) ?? [];
      return digits === undefined ? undefined : Number(digits) * (units[unit ?? ""] ?? 0);
    },
  ],
  ["x-server-timeout", (value) => (/^\d{1,10}(?:\.\d{1,9})?$/.test(value) ? Number(value) * 1_000 : undefined)],
];
