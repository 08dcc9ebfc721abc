import { PROOF_LIFE_MS, type ProofRefused } from "../platform/dpop/proof.ts";
import { createReplays } from "../platform/dpop/replays.ts";
import type { AdminClient } from "./admin/api.ts";
import { createIntrospection } from "./admin/introspection.ts";
import { type ProvingRequest, type VerifyProof, verifyBound } from "./bound.ts";
import { Closing, requireTimers } from "./closing.ts";
import type { PublishedKey } from "./keys/jwk.ts";
import type { KeySet, KeySetDeps } from "./keys/key-set.ts";
import { resolveOptions, type VerifierOptions } from "./options.ts";
import { holdProcess, unlessClosed } from "./ready.ts";
import { type RefusalRecords, RefusalReporter } from "./refusals/refusal-reporter.ts";
import { toSafeReport } from "./refusals/report.ts";
import { createOnDemand, type OnDemand, type OnDemandDeps } from "./revocations/on-demand.ts";
import { PolledRevocations } from "./revocations/polled-revocations.ts";
import { Revocations } from "./revocations/revocations.ts";
import type { FeedDeps, RevokedSessions } from "./revocations/revoked-sessions.ts";
import type { Expectations } from "./token-rules.ts";
import type { Verdict } from "./verdict.ts";
import { type CheckResult, VerifierCore } from "./verifier-core.ts";

export type VerifierState = {
  /** The ids of the keys that verify tokens now. */
  readonly kids: readonly string[];
  /** The refusals since the verifier was created, by their reasons: for a page that explains why everything is refused. */
  readonly refusals: RefusalRecords;
};

export interface Verifier {
  /** Decides whether to accept an access token. It never rejects. */
  verify(token: string): Promise<Verdict>;
  /**
   * Decides whether to accept an access token that is bound to a key, with the proof of its request (DPoP, RFC 9449 section 7). Each
   * proof is accepted once. It never rejects.
   */
  verifyBound(token: string, request: ProvingRequest): Promise<Verdict | ProofRefused>;
  /** Returns the age of the data about revocations, in ms. It is Infinity before the feed has delivered everything, and without a feed. */
  stalenessMs(): number;
  /** Returns what the verifier has refused so far, and with which keys it verifies. */
  state(): VerifierState;
  /**
   * Resolves when keys and revocations are known. Until then, `verify` waits for keys, and treats revocations by the `policy` for a stale
   * feed. Rejects when the admin token is refused or lacks the scope `watch`, or `adminUrl` is not the admin API (the verifier still
   * retries, since that may change), and with a VerifierClosedError when the verifier is closed before. A process that awaits it runs
   * until it is settled.
   */
  readonly ready: Promise<void>;
  /**
   * Closes all connections; a poll or a read that is under way for `pollIntervalMs` ends by its own limit of 5 s. Later verdicts use the
   * data that was read before for as long as it is fresh.
   */
  close(): void;
}

/** The part of a verifier that decides about requests. */
export type Decider = Pick<Verifier, "verify" | "verifyBound">;

/** The functions of a runtime with which the verifier checks signatures and calls the admin API. */
export type Runtime<Key extends PublishedKey, Keys extends KeySet<Key>> = {
  readonly createKeys: (deps: KeySetDeps) => Keys;
  /**
   * Checks a token with only the keys and the clock. The result `unknown_key` may change with newer keys. If the runtime cannot verify,
   * it rejects, and the verdict is `unavailable`.
   */
  readonly checkToken: (token: string, keys: Keys, expected: Expectations) => CheckResult | Promise<CheckResult>;
  readonly verifyProof: VerifyProof;
  readonly createAdminClient: (options: VerifierOptions, closing: Closing) => AdminClient | undefined;
};

/** How a verifier learns of keys and revocations. */
type Source = {
  /** Undefined without an admin API. */
  readonly revocations: RevokedSessions | undefined;
  /** Reads what is due before a verdict. It is absent if keys and revocations are followed all the time. */
  readonly refresh?: OnDemand["refresh"];
  readonly ready: () => Promise<void>;
};

type Feed = Omit<FeedDeps, "signal">;

/** Follows keys and revocations all the time, until the verifier is closed. */
function follow(keys: KeySet<PublishedKey>, feed: Feed | undefined, closing: Closing): Source {
  const signal = closing.toSignal();
  const revocations = feed && new Revocations({ ...feed, signal });
  const ready = unlessClosed(Promise.all([keys.ready, revocations?.ready]), signal);
  ready.catch(() => {}); // This prevents an unhandled rejection. A caller that awaits `ready` gets the error nevertheless.
  return { revocations, ready: () => ready };
}

/** Reads keys and revocations only when a token is verified. */
function readOnDemand(feed: Feed | undefined, pollIntervalMs: number, deps: Omit<OnDemandDeps, "polls">): Source {
  const polls = feed && new PolledRevocations({ ...feed, pollIntervalMs });
  return { revocations: polls, ...createOnDemand({ ...deps, polls }) };
}

/** Creates a verifier on a runtime. @throws TypeError, RangeError for options that cannot work */
export function createVerifierOn<Key extends PublishedKey, Keys extends KeySet<Key>>(
  runtime: Runtime<Key, Keys>,
  options: VerifierOptions,
): Verifier {
  const settings = resolveOptions(options);
  const { clock, monotonic, pollIntervalMs } = settings;
  const isOnDemand = pollIntervalMs !== undefined;
  if (!isOnDemand) requireTimers();
  const closing = new Closing();
  const signal = isOnDemand ? undefined : closing.toSignal();
  const report = toSafeReport((event) => (closing.isClosed ? undefined : options.report?.(event)));
  const client = runtime.createAdminClient(options, closing);
  const keys = runtime.createKeys({ ...settings, url: settings.jwksUrl, isOnDemand, report, signal });
  const revokeKeys = (kids: readonly string[]) => keys.revoke(kids);
  const feed = client && { client, clock, monotonic, revokeKeys, report };
  const refusals = new RefusalReporter({ ...settings, keys, report });
  const source = isOnDemand
    ? readOnDemand(feed, pollIntervalMs, { keys, clock, monotonic, closing })
    : follow(keys, feed, closing);
  const shareMs = isOnDemand ? Number.NEGATIVE_INFINITY : settings.maxStalenessMs;
  const introspect =
    client && settings.policy === "introspect" ? createIntrospection({ client, shareMs, signal }) : undefined;
  const { revocations, refresh } = source;
  const createCore = (expected: Expectations) => {
    const check = (token: string) => runtime.checkToken(token, keys, expected);
    return new VerifierCore({ settings, keys, check, revocations, introspect, refresh, refusals });
  };
  const core = createCore(settings);
  const boundCore = createCore({ ...settings, allowsBound: true });
  const { verifyProof } = runtime;
  const replays = createReplays({ windowMs: PROOF_LIFE_MS, monotonic });
  const bound = { verify: (token: string) => boundCore.verify(token), verifyProof, replays, clock, refusals };
  return {
    verify: (token) => core.verify(token),
    verifyBound: (token, request) => verifyBound(bound, token, request),
    stalenessMs: () => revocations?.stalenessMs(monotonic(), clock()) ?? Number.POSITIVE_INFINITY,
    state: () => ({ kids: keys.verifyingKids(monotonic()), refusals: refusals.toRecords() }),
    get ready() {
      const ready = source.ready();
      holdProcess(ready);
      return ready;
    },
    close: () => closing.close(),
  };
}
