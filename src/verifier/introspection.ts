import { patientTimeout } from "../clock/after-reading.ts";
import type { AdminClient } from "./admin-api.ts";
import { REFUSED, type Verdict } from "./verdict.ts";

const TIMEOUT_MS = 1000;

type UnderWay = { readonly startedAtMs: number; readonly verdict: Promise<Verdict> };

type IntrospectionDeps = {
  readonly client: Pick<AdminClient, "introspectToken">;
  /** A request may share a call that began at most this long ago, in ms. A negative value means that calls are never shared. */
  readonly shareMs: number;
  readonly signal: AbortSignal;
};

/** Introspects tokens while the feed is stale. There is one call for a token at a time, which all requests with this token share. */
export class Introspection {
  readonly #deps: IntrospectionDeps;
  readonly #underWay = new Map<string, UnderWay>();

  constructor(deps: IntrospectionDeps) {
    this.#deps = deps;
  }

  /**
   * Returns the verdict of the service: `accepted`, `revoked`, or `unavailable` if it does not respond within a second.
   * @param nowMs the time by the monotonic clock
   */
  introspect(token: string, accepted: Promise<Verdict>, nowMs: number): Promise<Verdict> {
    const underWay = this.#underWay.get(token);
    if (underWay !== undefined && nowMs - underWay.startedAtMs <= this.#deps.shareMs) return underWay.verdict;
    const call: UnderWay = { startedAtMs: nowMs, verdict: this.#call(token, accepted) };
    this.#underWay.set(token, call);
    void call.verdict.then(() => {
      if (this.#underWay.get(token) === call) this.#underWay.delete(token);
    });
    return call.verdict;
  }

  async #call(token: string, accepted: Promise<Verdict>): Promise<Verdict> {
    const { client, signal } = this.#deps;
    const timeout = new AbortController();
    const cancelTimeout = patientTimeout(() => timeout.abort(), TIMEOUT_MS);
    try {
      const { active } = await client.introspectToken(
        { token },
        { signal: AbortSignal.any([signal, timeout.signal]), timeoutMs: 0 },
      );
      return active ? await accepted : REFUSED.revoked;
    } catch {
      return REFUSED.unavailable;
    } finally {
      cancelTimeout();
    }
  }
}
