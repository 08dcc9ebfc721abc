/** Shows a key ring without its secrets. */
import { KEY_KINDS, type Ring } from "../../tokens/ring.ts";
import { nextStep, type RingTimes } from "../../tokens/ring-steps.ts";
import { table } from "../output/table.ts";
import { span } from "../output/times.ts";

export function ringAsTable(ring: Ring, now: number, times: RingTimes): string {
  const rows = KEY_KINDS.flatMap((kind) =>
    ring[kind].map((key) => {
      const next = nextStep(kind, key, times);
      const what = next === undefined ? "rotate replaces it" : `may ${next.step}`;
      const when = next === undefined ? "" : now >= next.from ? " now" : ` from ${new Date(next.from).toISOString()}`;
      return [kind, key.kid, key.alg, key.state, span(now - key.since), what + when];
    }),
  );
  return table([["kind", "kid", "alg", "state", "for", "next"], ...rows]);
}

export function ringAsJson(ring: Ring, _now: number, times: RingTimes): string {
  const keys = KEY_KINDS.flatMap((kind) =>
    ring[kind].map((key) => {
      const next = nextStep(kind, key, times);
      return {
        kind,
        kid: key.kid,
        alg: key.alg,
        state: key.state,
        since: new Date(key.since).toISOString(),
        ...(next !== undefined && { next: { step: next.step, from: new Date(next.from).toISOString() } }),
      };
    }),
  );
  return JSON.stringify({ keys });
}
