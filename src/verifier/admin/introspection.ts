import { limitCall } from "../closing.ts";
import { REFUSAL_VERDICTS, type Verdict } from "../verdict.ts";
import type { AdminClient } from "./api.ts";

const TIMEOUT_MS = 1000;

type UnderWay = { readonly startedAtMs: number; readonly verdict: Promise<Verdict> };

type IntrospectionDeps = {
  readonly client: Pick<AdminClient, "introspectToken">;
  /** A request may share a call that began at most this long ago, in ms. A negative value means that calls are never shared. */
  readonly shareMs: number;
  readonly signal: AbortSignal | undefined;
};

/** Returns the service's verdict on a token: `accepted`, `revoked`, or `unavailable` after a second. @param nowMs by the monotonic clock */
export type Introspect = (token: string, accepted: Promise<Verdict>, nowMs: number) => Promise<Verdict>;

/** Introspects tokens while the feed is stale. At most one call for a token is under way. All requests with this token share the call. */
export function createIntrospection({ client, shareMs, signal }: IntrospectionDeps): Introspect {
  const calls = new Map<string, UnderWay>();

  const call = async (token: string, accepted: Promise<Verdict>): Promise<Verdict> => {
    const limited = limitCall(signal, TIMEOUT_MS, "the introspection did not come");
    try {
      const options = { signal: limited.signal, timeoutMs: 0 };
      return (await client.introspectToken({ token }, options)).active ? await accepted : REFUSAL_VERDICTS.revoked;
    } catch {
      return REFUSAL_VERDICTS.unavailable;
    } finally {
      limited.end();
    }
  };

  return (token, accepted, nowMs) => {
    const underWay = calls.get(token);
    if (underWay !== undefined && nowMs - underWay.startedAtMs <= shareMs) return underWay.verdict;
    const own: UnderWay = { startedAtMs: nowMs, verdict: call(token, accepted) };
    calls.set(token, own);
    void own.verdict.then(() => {
      if (calls.get(token) === own) calls.delete(token);
    });
    return own.verdict;
  };
}
