import { afterReading } from "../clock/after-reading.ts";
import { createAdminClient } from "./admin-client.ts";
import { Introspection } from "./introspection.ts";
import { KeySet } from "./key-set.ts";
import { resolveOptions, type Settings, type VerifierOptions } from "./options.ts";
import { RecentlyUsed } from "./recently-used.ts";
import { toSafeReport } from "./report.ts";
import { Revocations } from "./revocations.ts";
import { type Checked, checkToken } from "./token.ts";
import { type Accepted, type Claims, REFUSED, REFUSED_PROMISES, type Verdict } from "./verdict.ts";

export interface Verifier {
  /** Decides whether to accept an access token. Never rejects. */
  verify(token: string): Promise<Verdict>;
  /** Returns the age of what is known of revocations, in ms. Infinity before the feed has delivered it, and without a feed. */
  stalenessMs(): number;
  /**
   * Resolves when keys and revocations are known. Until then `verify` waits for keys and follows the policy.
   * Rejects when the admin token is refused or lacks the scope `watch`. The verifier still retries, since the token may become valid.
   * A process that awaits it runs until it is settled or the verifier is closed.
   */
  readonly ready: Promise<void>;
  /** Closes all connections. Later verdicts use what was known at that time, as long as it is fresh. */
  close(): void;
}

type Entry = Checked & {
  /** When the session was created; in a token without `sct`, when the token was issued. */
  readonly createdAtMs: number;
  readonly expiresAtMs: number;
  readonly accepted: Promise<Verdict>;
};

/**
 * Creates a verifier of access tokens: it checks them locally, and follows the key set and the revocation feed.
 *
 * @throws TypeError, RangeError for options that cannot work
 * @example
 * ```ts
 * import { readFileSync } from "node:fs";
 * import { createVerifier } from "@session-service/verifier";
 *
 * const verifier = createVerifier({
 *   adminUrl: "http://127.0.0.1:8081",
 *   adminToken: () => readFileSync("/run/secrets/session-admin-token", "utf8").trim(),
 *   issuer: "https://sessions.example",
 *   audience: "https://api.example",
 *   report: (event) => console.log(event),
 * });
 * await verifier.ready;
 *
 * export async function statusOf(token: string): Promise<200 | 401 | 503> {
 *   const verdict = await verifier.verify(token);
 *   if (verdict.ok) return 200; // verdict.claims.sub is the user
 *   return verdict.reason === "unavailable" ? 503 : 401;
 * }
 * ```
 */
export function createVerifier(options: VerifierOptions): Verifier {
  const settings = resolveOptions(options);
  const { clock, monotonic } = settings;
  const closing = new AbortController();
  const { signal } = closing;
  const report = toSafeReport(options.report);
  const client = createAdminClient(options, signal);
  const keys = new KeySet({ url: settings.jwksUrl, fetch: settings.fetch, monotonic, report, signal });
  const revokeKeys = (kids: readonly string[]) => keys.revoke(kids);
  const revocations = client && new Revocations({ client, clock, monotonic, revokeKeys, report, signal });
  const introspection =
    client && settings.policy === "introspect" ? new Introspection({ client, ...settings, signal }) : undefined;
  const core = new VerifierCore(settings, keys, revocations, introspection);
  const ready = Promise.all([keys.ready, revocations?.ready]).then(() => {});
  ready.catch(() => {}); // whoever awaits it reports the error
  let awaited = false;
  return {
    verify: (token) => core.verify(token),
    stalenessMs: () => revocations?.stalenessMs(monotonic(), clock()) ?? Number.POSITIVE_INFINITY,
    get ready() {
      if (!awaited) holdProcess(ready, signal);
      awaited = true;
      return ready;
    },
    close: () => closing.abort(),
  };
}

/**
 * Keeps the process running until `ready` is settled. Retries alone do not, so Node would end a process in the middle of `await
 * verifier.ready`.
 */
function holdProcess(ready: Promise<void>, signal: AbortSignal): void {
  const hold = setInterval(() => {}, 0x7fff_ffff);
  const release = () => clearInterval(hold);
  ready.then(release, release);
  if (signal.aborted) release();
  else signal.addEventListener("abort", release);
}

function acceptedOf(claims: Claims): Accepted {
  return { ok: true, claims, deviceBound: claims.device_bound === true };
}

class VerifierCore {
  readonly #settings: Settings;
  readonly #keys: KeySet;
  readonly #revocations: Revocations | undefined;
  readonly #introspection: Introspection | undefined;
  readonly #cache: RecentlyUsed<Entry>;
  /** The number of batches at which the feed was found stale. It is still stale if no other batch has arrived. */
  #staleAfterBatches = -1;

  constructor(
    settings: Settings,
    keys: KeySet,
    revocations: Revocations | undefined,
    introspection: Introspection | undefined,
  ) {
    this.#settings = settings;
    this.#keys = keys;
    this.#revocations = revocations;
    this.#introspection = introspection;
    this.#cache = new RecentlyUsed(settings.cacheSize);
  }

  verify(token: string): Promise<Verdict> {
    const known = this.#cache.get(token);
    if (known !== undefined && !known.key.withdrawn) return this.#judge(token, known);
    if (typeof token !== "string") return REFUSED_PROMISES.malformed;
    const checked = checkToken(token, this.#keys, this.#settings);
    if (checked.ok) return this.#judge(token, this.#remember(token, checked));
    return checked.reason === "unknown_key" ? this.#verifyWithNewerKeys(token) : REFUSED_PROMISES[checked.reason];
  }

  /** Checks the facts about a valid token that can change: its time, its session, its key, the age of the feed. */
  #judge(token: string, entry: Entry): Promise<Verdict> {
    const { clock, monotonic, maxStalenessMs } = this.#settings;
    const wallMs = clock();
    if (wallMs >= entry.expiresAtMs) return REFUSED_PROMISES.expired;
    if (this.#revocations?.has(entry.claims.sid, entry.createdAtMs)) return REFUSED_PROMISES.revoked;
    const nowMs = monotonic();
    if (!this.#keys.isTrusted(nowMs)) return REFUSED_PROMISES.unavailable;
    if (this.#revocations === undefined || this.#revocations.stalenessMs(nowMs, wallMs) <= maxStalenessMs) {
      return entry.accepted;
    }
    // After this process was stopped, batches may have arrived that it has not read yet.
    if (this.#revocations.batches !== this.#staleAfterBatches) return this.#judgeAfterReading(token, entry);
    return this.#introspection?.introspect(token, entry.accepted, nowMs) ?? REFUSED_PROMISES.unavailable;
  }

  async #judgeAfterReading(token: string, entry: Entry): Promise<Verdict> {
    await new Promise<void>(afterReading);
    this.#staleAfterBatches = this.#revocations?.batches ?? -1;
    return this.#judge(token, entry);
  }

  /** Checks a token again after reading newer keys: an unknown key may be newer than the key set. */
  async #verifyWithNewerKeys(token: string): Promise<Verdict> {
    const isReadable = await this.#keys.refresh();
    const checked = checkToken(token, this.#keys, this.#settings);
    if (checked.ok) return this.#judge(token, this.#remember(token, checked));
    return checked.reason === "unknown_key" && !isReadable ? REFUSED.unavailable : REFUSED[checked.reason];
  }

  #remember(token: string, checked: Checked): Entry {
    const { sct, iat, exp } = checked.claims;
    const entry = {
      ...checked,
      createdAtMs: typeof sct === "number" ? sct : iat * 1000,
      expiresAtMs: exp * 1000,
      accepted: Promise.resolve<Verdict>(Object.freeze(acceptedOf(checked.claims))),
    };
    this.#cache.set(token, entry);
    return entry;
  }
}
