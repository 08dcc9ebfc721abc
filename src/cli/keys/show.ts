/** Shows a key ring without its secrets. */
import { KEY_KINDS, type Ring } from "../../tokens/ring.ts";
import { nextStep, type RingTimes } from "../../tokens/ring-steps.ts";
import { table } from "../output/table.ts";
import { span } from "../output/times.ts";

/** Returns the keys of a ring, each with its possible next step. */
const keysOf = (ring: Ring, times: RingTimes) =>
  KEY_KINDS.flatMap((kind) => ring[kind].map((key) => ({ ...key, kind, next: nextStep(kind, key, times) })));

export function ringAsTable(ring: Ring, now: number, times: RingTimes): string {
  const rows = keysOf(ring, times).map(({ kind, kid, alg, state, since, next }) => {
    const what = next === undefined ? "rotate replaces it" : `may ${next.step}`;
    const when = next === undefined ? "" : now >= next.from ? " now" : ` from ${new Date(next.from).toISOString()}`;
    return [kind, kid, alg, state, span(now - since), what + when];
  });
  return table([["kind", "kid", "alg", "state", "for", "next"], ...rows]);
}

export function ringAsJson(ring: Ring, _now: number, times: RingTimes): string {
  const keys = keysOf(ring, times).map(({ kind, kid, alg, state, since, next }) => ({
    ...{ kind, kid, alg, state, since: new Date(since).toISOString() },
    ...(next !== undefined && { next: { step: next.step, from: new Date(next.from).toISOString() } }),
  }));
  return JSON.stringify({ keys });
}
