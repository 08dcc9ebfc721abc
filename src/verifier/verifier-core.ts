import { RecentlyUsed } from "../platform/caches/recently-used.ts";
import { afterReading } from "../platform/clock/after-reading.ts";
import type { Introspect } from "./admin/introspection.ts";
import type { PublishedKey } from "./keys/jwk.ts";
import type { KeySet } from "./keys/key-set.ts";
import type { Settings } from "./options.ts";
import type { Refusals } from "./refusals/refusals.ts";
import type { OnDemand } from "./revocations/on-demand.ts";
import type { RevokedSessions } from "./revocations/revoked-sessions.ts";
import { type Checked, type Refused, readToken } from "./token-rules.ts";
import { type Accepted, REFUSED_PROMISES, type Refusal, type Verdict } from "./verdict.ts";

export type CheckResult = Checked | Refused;

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
  readonly refusals: Refusals;
};

/** Decides about tokens by what is known now, and by what it reads for them. */
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
    if (refresh === undefined) return this.#verifyKnowing(token);
    // A text that cannot be a token does not cause a read of keys or revocations.
    const isToken =
      this.#cache.get(token) !== undefined || (typeof token === "string" && readToken(token) !== undefined);
    if (!isToken) return this.#refuse("malformed", token);
    return refresh()?.then(() => this.#verifyKnowing(token)) ?? this.#verifyKnowing(token);
  }

  /** Verifies a token with the keys and revocations that are known now. */
  #verifyKnowing(token: string): Promise<Verdict> {
    const known = this.#cache.get(token);
    if (known !== undefined && !known.key.withdrawn) return this.#judge(token, known);
    if (typeof token !== "string") return this.#refuse("malformed", token);
    const checked = this.#deps.check(token);
    return checked instanceof Promise
      ? checked.then((result) => this.#decide(token, result)).catch(() => this.#refuse("unavailable", token))
      : this.#decide(token, checked);
  }

  #decide(token: string, checked: CheckResult): Promise<Verdict> {
    if (checked.ok) return this.#judge(token, this.#remember(token, checked));
    return checked.reason === "unknown_key" ? this.#verifyWithNewerKeys(token) : this.#refuse(checked.reason, token);
  }

  /** Decides about a valid token by the facts that can change: its key, the time, its session, the age of the feed. */
  #judge(token: string, entry: Entry): Promise<Verdict> {
    const changed = this.#judgeChanges(token, entry);
    if (changed !== undefined) return changed;
    const { revocations } = this.#deps;
    if (revocations === undefined || this.#isFresh(revocations)) return entry.accepted;
    // If this process was suspended, batches may have arrived that it has not read yet. It reads them before it decides.
    if (revocations.batches !== this.#staleAfterBatches) return this.#judgeAfterReading(token, entry);
    const decide = () => (this.#isFresh(revocations) ? this.#judge(token, entry) : this.#introspect(token, entry));
    // After an outage, another request may already have begun a poll for the missing revocations. This request waits for that poll before
    // it decides.
    return revocations.underWay()?.then(decide) ?? this.#introspect(token, entry);
  }

  /** Returns why a token that was valid is not accepted any more; undefined if nothing has changed. */
  #judgeChanges(token: string, entry: Entry): Promise<Verdict> | undefined {
    const { keys, revocations, settings } = this.#deps;
    // The token's key was revoked or has left the key set, perhaps during this decision, so the decision begins again.
    if (entry.key.withdrawn) return this.#verifyKnowing(token);
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

  async #judgeAfterReading(token: string, entry: Entry): Promise<Verdict> {
    await new Promise<void>(afterReading);
    this.#staleAfterBatches = this.#deps.revocations?.batches ?? -1;
    return this.#judge(token, entry);
  }

  async #introspect(token: string, entry: Entry): Promise<Verdict> {
    const { introspect, settings } = this.#deps;
    if (introspect === undefined) return this.#refuse("unavailable", token);
    const verdict = await introspect(token, entry.accepted, settings.monotonic());
    // While the introspection call was under way, the feed may have delivered a revocation that the service did not know when it responded.
    return verdict.ok ? ((await this.#judgeChanges(token, entry)) ?? verdict) : this.#refuse(verdict.reason, token);
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
    return REFUSED_PROMISES[reason];
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
