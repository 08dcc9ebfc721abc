import { RecentlyUsed } from "../platform/caches/recently-used.ts";
import { afterReading } from "../platform/clock/after-reading.ts";
import type { Introspect } from "./admin/introspection.ts";
import type { PublishedKey } from "./keys/jwk.ts";
import type { KeySet } from "./keys/key-set.ts";
import type { Settings } from "./options.ts";
import type { RefusalReporter } from "./refusals/refusal-reporter.ts";
import type { OnDemand } from "./revocations/on-demand.ts";
import type { RevokedSessions } from "./revocations/revoked-sessions.ts";
import { type Checked, readToken } from "./token-rules.ts";
import { type Accepted, REFUSAL_PROMISES, type Refusal, type RefusalVerdict, type Verdict } from "./verdict.ts";

export type CheckResult = Checked | RefusalVerdict;

type Entry = Checked & {
  /** When the session was created. For a token without `sct`, this is when the token was issued. */
  readonly createdAtMs: number;
  readonly expiresAtMs: number;
  readonly accepted: Promise<Verdict>;
};

type CoreDeps = {
  readonly settings: Settings;
  readonly keys: Pick<KeySet<PublishedKey>, "isTrusted" | "refresh">;
  readonly check: (token: string) => CheckResult | Promise<CheckResult>;
  readonly revocations: RevokedSessions | undefined;
  readonly introspect: Introspect | undefined;
  /** Reads what is due before a verdict; undefined if keys and revocations are followed all the time. */
  readonly refresh: OnDemand["refresh"] | undefined;
  readonly refusals: RefusalReporter;
};

/**
 * Decides about tokens by what is known now, and by what it reads for them:
 *
 * 1. `verify` first reads the keys and revocations that are due, if they are read on demand.
 * 2. `#verifyWithKnownKeys` finds the token in the cache, or checks its signature and claims.
 * 3. `#admit` puts a valid token into the cache. If its key is unknown, `#verifyWithNewerKeys` reads the keys and checks it once more.
 * 4. `#judge` refuses it for what has changed since (`#verdictByChange`). If its key was withdrawn, step 2 follows again.
 * 5. If the feed is stale, `#judge` runs again after what is still to be read (`#judgeAfterPendingReads`), or the service is asked.
 */
export class VerifierCore {
  readonly #deps: CoreDeps;
  readonly #cache: RecentlyUsed<Entry>;
  /** The number of batches when the feed was last found stale. Without a further batch, the feed is still stale. */
  #staleAfterBatches = -1;

  constructor(deps: CoreDeps) {
    this.#deps = deps;
    this.#cache = new RecentlyUsed(deps.settings.cacheSize);
  }

  verify(token: string): Promise<Verdict> {
    const { refresh } = this.#deps;
    if (refresh === undefined) return this.#verifyWithKnownKeys(token);
    // A text that cannot be a token does not cause a read of keys or revocations.
    const isToken =
      this.#cache.get(token) !== undefined || (typeof token === "string" && readToken(token) !== undefined);
    if (!isToken) return this.#refuse("malformed", token);
    return refresh()?.then(() => this.#verifyWithKnownKeys(token)) ?? this.#verifyWithKnownKeys(token);
  }

  #verifyWithKnownKeys(token: string): Promise<Verdict> {
    const known = this.#cache.get(token);
    if (known !== undefined && !known.key.withdrawn) return this.#judge(token, known);
    if (typeof token !== "string") return this.#refuse("malformed", token);
    const checked = this.#deps.check(token);
    return checked instanceof Promise
      ? checked.then((result) => this.#admit(token, result)).catch(() => this.#refuse("unavailable", token))
      : this.#admit(token, checked);
  }

  /** Admits a checked token to the cache and to its judgement. */
  #admit(token: string, checked: CheckResult): Promise<Verdict> {
    if (checked.ok) return this.#judge(token, this.#remember(token, checked));
    return checked.reason === "unknown_key" ? this.#verifyWithNewerKeys(token) : this.#refuse(checked.reason, token);
  }

  /** Decides about a valid token by the facts that can change: its key, the time, its session, the age of the feed. */
  #judge(token: string, entry: Entry): Promise<Verdict> {
    const changed = this.#verdictByChange(token, entry);
    if (changed !== undefined) return changed;
    const { revocations } = this.#deps;
    if (revocations === undefined || this.#isFresh(revocations)) return entry.accepted;
    // If this process was suspended, batches may have arrived that it has not read yet. It reads them before it decides.
    if (revocations.batches !== this.#staleAfterBatches) return this.#judgeAfterPendingReads(token, entry);
    const decide = () => (this.#isFresh(revocations) ? this.#judge(token, entry) : this.#introspect(token, entry));
    // After an outage, another request may already have begun a poll for the missing revocations. This request waits for that poll before
    // it decides.
    return revocations.underWay()?.then(decide) ?? this.#introspect(token, entry);
  }

  /** Returns the verdict on a token that was valid, if something has changed; undefined otherwise. */
  #verdictByChange(token: string, entry: Entry): Promise<Verdict> | undefined {
    const { keys, revocations, settings } = this.#deps;
    // The token's key was revoked or has left the key set, perhaps during this decision, so the decision begins again.
    if (entry.key.withdrawn) return this.#verifyWithKnownKeys(token);
    if (settings.clock() >= entry.expiresAtMs) return this.#refuse("expired", token);
    const { sid, sv = 0 } = entry.claims;
    if (revocations?.has(sid, entry.createdAtMs)) return this.#refuse("revoked", token);
    if (sv < (revocations?.minVersion(sid) ?? 0)) return this.#refuse("stale", token);
    return keys.isTrusted(settings.monotonic()) ? undefined : this.#refuse("unavailable", token);
  }

  #isFresh(revocations: RevokedSessions): boolean {
    const { clock, monotonic, maxStalenessMs } = this.#deps.settings;
    return revocations.stalenessMs(monotonic(), clock()) <= maxStalenessMs;
  }

  /** Judges a token after the event loop has read what has arrived already. */
  async #judgeAfterPendingReads(token: string, entry: Entry): Promise<Verdict> {
    await new Promise<void>(afterReading);
    this.#staleAfterBatches = this.#deps.revocations?.batches ?? -1;
    return this.#judge(token, entry);
  }

  async #introspect(token: string, entry: Entry): Promise<Verdict> {
    const { introspect, settings } = this.#deps;
    if (introspect === undefined) return this.#refuse("unavailable", token);
    const verdict = await introspect(token, entry.accepted, settings.monotonic());
    // While the introspection call was under way, the feed may have delivered a revocation that the service did not know when it responded.
    return verdict.ok ? ((await this.#verdictByChange(token, entry)) ?? verdict) : this.#refuse(verdict.reason, token);
  }

  /** Reads the keys again and then checks the token again, because an unknown key may be newer than the key set. */
  async #verifyWithNewerKeys(token: string): Promise<Verdict> {
    const isReadable = await this.#deps.keys.refresh();
    const checked = await this.#deps.check(token);
    if (checked.ok) return this.#judge(token, this.#remember(token, checked));
    return this.#refuse(checked.reason === "unknown_key" && !isReadable ? "unavailable" : checked.reason, token);
  }

  #refuse(reason: Refusal, token: string): Promise<Verdict> {
    this.#deps.refusals.note(reason, { token });
    return REFUSAL_PROMISES[reason];
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
