import { afterReading } from "../platform/clock/after-reading.ts";
import type { AdminClient } from "./admin-api.ts";
import { Closing, requireTimers } from "./closing.ts";
import { type ProvingRequest, type VerifyProof, verifyBound } from "./dpop/bound.ts";
import { PROOF_LIFE_MS, type ProofRefused } from "./dpop/proof.ts";
import { createReplays } from "./dpop/replays.ts";
import { createIntrospection, type Introspect } from "./introspection.ts";
import type { PublishedKey } from "./jwk.ts";
import type { KeySet, KeySetDeps } from "./key-set.ts";
import { createOnDemand, type OnDemand } from "./on-demand.ts";
import { resolveOptions, type Settings, type VerifierOptions } from "./options.ts";
import { PolledRevocations } from "./polled-revocations.ts";
import { holdProcess, unlessClosed } from "./ready.ts";
import { RecentlyUsed } from "./recently-used.ts";
import { toSafeReport } from "./report.ts";
import { Revocations } from "./revocations.ts";
import type { RevokedSessions } from "./revoked-sessions.ts";
import { type Checked, type Expectations, type Refused, splitToken } from "./token-rules.ts";
import { type Accepted, REFUSED, REFUSED_PROMISES, type Verdict } from "./verdict.ts";

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
  /**
   * Resolves when keys and revocations are known. Until then, `verify` waits for keys, and treats revocations by the `policy` for a stale
   * feed. Rejects when the admin token is refused or lacks the scope `watch` (the verifier still retries, since the token may become
   * valid), and with a VerifierClosedError when the verifier is closed before. A process that awaits it runs until it is settled.
   */
  readonly ready: Promise<void>;
  /**
   * Closes all connections; a poll or a read that is under way for `pollIntervalMs` ends by its own limit of 5 s. Later verdicts use the
   * data that was read before for as long as it is fresh.
   */
  close(): void;
}

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

type CheckResult = Checked | Refused;

type Entry = Checked & {
  /** When the session was created. For a token without `sct`, this is when the token was issued. */
  readonly createdAtMs: number;
  readonly expiresAtMs: number;
  readonly accepted: Promise<Verdict>;
};

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
  const stream = feed && signal ? new Revocations({ ...feed, signal }) : undefined;
  const polls = feed && isOnDemand ? new PolledRevocations({ ...feed, pollIntervalMs }) : undefined;
  const onDemand = isOnDemand ? createOnDemand({ keys, polls, clock, monotonic, closing }) : undefined;
  const shareMs = isOnDemand ? Number.NEGATIVE_INFINITY : settings.maxStalenessMs;
  const shared = {
    settings,
    keys,
    revocations: stream ?? polls,
    introspect:
      client && settings.policy === "introspect" ? createIntrospection({ client, shareMs, signal }) : undefined,
    onDemand,
    polls,
  };
  const createCore = (expected: Expectations) =>
    new VerifierCore({ ...shared, check: (token) => runtime.checkToken(token, keys, expected) });
  const core = createCore(settings);
  const boundCore = createCore({ ...settings, allowsBound: true });
  const { verifyProof } = runtime;
  const replays = createReplays({ windowMs: PROOF_LIFE_MS, monotonic });
  const bound = { verify: (token: string) => boundCore.verify(token), verifyProof, replays, clock };
  const followed = signal && unlessClosed(Promise.all([keys.ready, stream?.ready]), signal);
  followed?.catch(() => {}); // This prevents an unhandled rejection. A caller that awaits `ready` gets the error nevertheless.
  return {
    verify: (token) => core.verify(token),
    verifyBound: (token, request) => verifyBound(bound, token, request),
    stalenessMs: () => (stream ?? polls)?.stalenessMs(monotonic(), clock()) ?? Number.POSITIVE_INFINITY,
    get ready() {
      const ready = followed ?? (onDemand as OnDemand).ready();
      holdProcess(ready);
      return ready;
    },
    close: () => closing.close(),
  };
}

type CoreDeps = {
  readonly settings: Settings;
  readonly keys: Pick<KeySet<PublishedKey>, "isTrusted" | "refresh">;
  readonly check: (token: string) => CheckResult | Promise<CheckResult>;
  readonly revocations: RevokedSessions | undefined;
  readonly introspect: Introspect | undefined;
  readonly onDemand: OnDemand | undefined;
  readonly polls: PolledRevocations | undefined;
};

class VerifierCore {
  readonly #deps: CoreDeps;
  readonly #cache: RecentlyUsed<Entry>;
  /** The number of batches when the feed was last found stale. Without a further batch, the feed is still stale. */
  #staleAfterBatches = -1;

  constructor(deps: CoreDeps) {
    this.#deps = deps;
    this.#cache = new RecentlyUsed(deps.settings.cacheSize);
  }

  verify(token: string): Promise<Verdict> {
    const { onDemand } = this.#deps;
    if (onDemand === undefined) return this.#verifyKnowing(token);
    // A text that cannot be a token does not cause a read of keys or revocations.
    if (typeof token !== "string" || splitToken(token) === undefined) return REFUSED_PROMISES.malformed;
    return onDemand.refresh()?.then(() => this.#verifyKnowing(token)) ?? this.#verifyKnowing(token);
  }

  /** Verifies a token with the keys and revocations that are known now. */
  #verifyKnowing(token: string): Promise<Verdict> {
    const known = this.#cache.get(token);
    if (known !== undefined && !known.key.withdrawn) return this.#judge(token, known);
    if (typeof token !== "string") return REFUSED_PROMISES.malformed;
    const checked = this.#deps.check(token);
    return checked instanceof Promise
      ? checked.then((result) => this.#decide(token, result)).catch(() => REFUSED.unavailable)
      : this.#decide(token, checked);
  }

  #decide(token: string, checked: CheckResult): Promise<Verdict> {
    if (checked.ok) return this.#judge(token, this.#remember(token, checked));
    return checked.reason === "unknown_key" ? this.#verifyWithNewerKeys(token) : REFUSED_PROMISES[checked.reason];
  }

  /** Decides about a valid token by the facts that can change: its key, the time, its session, the age of the feed. */
  #judge(token: string, entry: Entry): Promise<Verdict> {
    const changed = this.#judgeChanges(token, entry);
    if (changed !== undefined) return changed;
    const { revocations, polls } = this.#deps;
    if (revocations === undefined || this.#isFresh(revocations)) return entry.accepted;
    // If this process was suspended, batches may have arrived that it has not read yet. It reads them before it decides.
    if (revocations.batches !== this.#staleAfterBatches) return this.#judgeAfterReading(token, entry);
    const decide = () => (this.#isFresh(revocations) ? this.#judge(token, entry) : this.#introspect(token, entry));
    // After an outage, another request may already have begun a poll for the missing revocations. This request waits for that poll before
    // it decides.
    return polls?.underWay()?.then(decide) ?? this.#introspect(token, entry);
  }

  /** Returns why a token that was valid is not accepted any more; undefined if nothing has changed. */
  #judgeChanges(token: string, entry: Entry): Promise<Verdict> | undefined {
    const { keys, revocations, settings } = this.#deps;
    // The token's key was revoked or has left the key set, perhaps during this decision, so the decision begins again.
    if (entry.key.withdrawn) return this.#verifyKnowing(token);
    if (settings.clock() >= entry.expiresAtMs) return REFUSED_PROMISES.expired;
    if (revocations?.has(entry.claims.sid, entry.createdAtMs)) return REFUSED_PROMISES.revoked;
    return keys.isTrusted(settings.monotonic()) ? undefined : REFUSED_PROMISES.unavailable;
  }

  #isFresh(revocations: RevokedSessions): boolean {
    const { clock, monotonic, maxStalenessMs } = this.#deps.settings;
    return revocations.stalenessMs(monotonic(), clock()) <= maxStalenessMs;
  }

  async #judgeAfterReading(token: string, entry: Entry): Promise<Verdict> {
    await new Promise<void>(afterReading);
    this.#staleAfterBatches = this.#deps.revocations?.batches ?? -1;
    return this.#judge(token, entry);
  }

  async #introspect(token: string, entry: Entry): Promise<Verdict> {
    const { introspect, settings } = this.#deps;
    if (introspect === undefined) return REFUSED.unavailable;
    const verdict = await introspect(token, entry.accepted, settings.monotonic());
    // While the introspection call was under way, the feed may have delivered a revocation that the service did not know when it responded.
    return (verdict.ok && (await this.#judgeChanges(token, entry))) || verdict;
  }

  /** Reads the keys again and then checks the token again, because an unknown key may be newer than the key set. */
  async #verifyWithNewerKeys(token: string): Promise<Verdict> {
    const isReadable = await this.#deps.keys.refresh();
    const checked = await this.#deps.check(token);
    if (checked.ok) return this.#judge(token, this.#remember(token, checked));
    return checked.reason === "unknown_key" && !isReadable ? REFUSED.unavailable : REFUSED[checked.reason];
  }

  #remember(token: string, checked: Checked): Entry {
    const { claims } = checked;
    const { sct, iat, exp } = claims;
    const accepted: Accepted = { ok: true, claims, deviceBound: claims.device_bound === true };
    const entry = {
      ...checked,
      createdAtMs: typeof sct === "number" ? sct : iat * 1000,
      expiresAtMs: exp * 1000,
      accepted: Promise.resolve<Verdict>(Object.freeze(accepted)),
    };
    this.#cache.set(token, entry);
    return entry;
  }
}
