import { type Client, createClient, type Interceptor, type Transport } from "@connectrpc/connect";
import { createConnectTransport, Http2SessionManager } from "@connectrpc/connect-node";
import { SessionAdminService } from "../../gen/auth/admin/v1/session_admin_pb.ts";
import { followKeySet } from "./key-set.ts";
import { RecentlyUsed } from "./recently-used.ts";
import { harmless, type Report } from "./report.ts";
import { followRevocations } from "./revocations.ts";
import { type Checked, checkToken, type Expectations } from "./token.ts";
import { REFUSED, type Verdict } from "./verdict.ts";

export type VerifierOptions = {
  /** `iss` of every token. */
  readonly issuer: string;
  /** Who we are: one of a token's `aud` must be (one of) this. */
  readonly audience: string | readonly string[];
  /**
   * The admin API, `http://…` (h2c) or `https://…`: keys, revocation feed and introspection. Without it only
   * `jwksUrl` is read: a logout is then seen no sooner than the token expires, and `staleness()` says Infinity.
   */
  readonly adminUrl?: string;
  /** Its bearer token; a function when it is rotated. */
  readonly adminToken?: string | (() => string);
  /** Where the keys are, when not at the admin API. */
  readonly jwksUrl?: string;
  /**
   * What to do when the feed was not heard for `maxStaleness`: ask `IntrospectToken` for each token (the
   * default), or refuse with `unavailable`. A token is never accepted on older knowledge.
   */
  readonly policy?: "introspect" | "refuse";
  /** ms, 5000 by default; 0 to ask each time. The feed is heard at least every second. */
  readonly maxStaleness?: number;
  /** How many verified tokens are remembered, 10,000 by default (some 2 KiB each); at least 2. */
  readonly cacheSize?: number;
  /** For the log. What it throws is ignored. */
  readonly report?: Report;
  /** Replaces the connection to the admin API (mutual TLS, a proxy, tests). */
  readonly transport?: Transport;
  /** Replaces the way to the key set. */
  readonly fetch?: typeof fetch;
  /** Wall clock, ms since the epoch. */
  readonly clock?: () => number;
  /** A clock that never jumps, ms. */
  readonly monotonic?: () => number;
};

export interface Verifier {
  /** Whether to serve the bearer of this access token now. Never rejects. */
  verify(token: string): Promise<Verdict>;
  /** How old our knowledge of revocations is, ms. */
  staleness(): number;
  /**
   * Resolves when keys and revocations are known; until then `verify` waits for keys and follows the policy. Rejects
   * when the admin token is refused (the verifier goes on trying: the token may come into force).
   */
  readonly ready: Promise<void>;
  /** Lets go of all connections; what is verified from now on is as stale as its last word. */
  close(): void;
}

/** How long an introspection may take, ms. */
const INTROSPECTION_TIMEOUT = 1000;

type Entry = Checked & {
  /** When its session was created, or, in a token of an older service, when the token was: not before. ms */
  readonly createdAt: number;
  readonly expiresAt: number;
  readonly verdict: Promise<Verdict>;
};

/** Verifies access tokens locally and follows what is revoked. */
export function createVerifier(options: VerifierOptions): Verifier {
  const { adminUrl, policy = "introspect", maxStaleness = 5000, cacheSize = 10_000 } = options;
  const report = harmless(options.report);
  const { clock = Date.now, monotonic = () => performance.now(), fetch = globalThis.fetch } = options;
  const jwksUrl = options.jwksUrl ?? (adminUrl && new URL("/.well-known/jwks.json", adminUrl).href);
  if (jwksUrl === undefined) throw new TypeError("createVerifier needs adminUrl or jwksUrl");
  const audiences = new Set([options.audience].flat());
  if (audiences.size === 0) throw new TypeError("createVerifier needs an audience");
  if (!(maxStaleness >= 0)) throw new RangeError("createVerifier: maxStaleness must be a number of ms, at least 0");
  if (!(Number.isInteger(cacheSize) && cacheSize >= 2))
    throw new RangeError("createVerifier: cacheSize must be a whole number, at least 2");
  const closing = new AbortController();
  const { signal } = closing;
  const expected: Expectations = { issuer: options.issuer, audiences, clock };

  const client = adminClient(options, signal);
  const keys = followKeySet({ url: jwksUrl, fetch, monotonic, report, signal });
  const revocations =
    client && followRevocations({ client, clock, monotonic, revokeKeys: keys.revoke, report, signal });
  const cache = new RecentlyUsed<Entry>(cacheSize);
  /** Introspections that are under way, by token. */
  const asked = new Map<string, { readonly askedAt: number; readonly verdict: Promise<Verdict> }>();
  const refused = promised(REFUSED);

  /** What can change about a token that was fine: its time, its key, its session, and what we know. */
  function judge(token: string, entry: Entry): Promise<Verdict> {
    const wall = clock();
    if (wall >= entry.expiresAt) return refused.expired;
    if (revocations?.has(entry.claims.sid, entry.createdAt)) return refused.revoked;
    const now = monotonic();
    if (!keys.trusted(now)) return refused.unavailable;
    if (revocations === undefined || revocations.staleness(now, wall) <= maxStaleness) return entry.verdict;
    return policy === "introspect" && client !== undefined ? askOnce(client, token, entry, now) : refused.unavailable;
  }

  /** One question per token at a time, which all who present it share unless it was asked too long ago for them. */
  function askOnce(admin: AdminClient, token: string, entry: Entry, now: number): Promise<Verdict> {
    const underWay = asked.get(token);
    if (underWay !== undefined && now - underWay.askedAt <= maxStaleness) return underWay.verdict;
    const question = { askedAt: now, verdict: ask(admin, token, entry) };
    asked.set(token, question);
    void question.verdict.then(() => {
      if (asked.get(token) === question) asked.delete(token);
    });
    return question.verdict;
  }

  async function ask(admin: AdminClient, token: string, entry: Entry): Promise<Verdict> {
    try {
      const { active } = await admin.introspectToken({ token }, { timeoutMs: INTROSPECTION_TIMEOUT, signal });
      return active ? await entry.verdict : REFUSED.revoked;
    } catch {
      return REFUSED.unavailable;
    }
  }

  function remember(token: string, checked: Checked): Entry {
    const verdict = Promise.resolve<Verdict>(Object.freeze({ ok: true, claims: checked.claims }));
    const { sct, iat, exp } = checked.claims;
    const createdAt = typeof sct === "number" ? sct : iat * 1000;
    const entry = { ...checked, createdAt, expiresAt: exp * 1000, verdict };
    cache.set(token, entry);
    return entry;
  }

  /** A key that we do not know may be newer than our key set. */
  async function verifyWithNewerKeys(token: string): Promise<Verdict> {
    const known = await keys.lookAgain();
    const checked = checkToken(token, keys, expected);
    if (typeof checked !== "string") return judge(token, remember(token, checked));
    return checked === "unknown_key" && !known ? REFUSED.unavailable : REFUSED[checked];
  }

  const ready = Promise.all([keys.ready, revocations?.ready]).then(() => {});
  ready.catch(() => {}); // whoever waits for it is told

  return {
    verify(token) {
      const known = cache.get(token);
      if (known !== undefined && !known.key.withdrawn) return judge(token, known);
      if (typeof token !== "string") return refused.malformed;
      const checked = checkToken(token, keys, expected);
      if (checked === "unknown_key") return verifyWithNewerKeys(token);
      return typeof checked === "string" ? refused[checked] : judge(token, remember(token, checked));
    },
    staleness: () => revocations?.staleness(monotonic(), clock()) ?? Number.POSITIVE_INFINITY,
    ready,
    close: () => closing.abort(),
  };
}

type AdminClient = Client<typeof SessionAdminService>;

function adminClient(options: VerifierOptions, signal: AbortSignal): AdminClient | undefined {
  const { adminUrl, adminToken, policy } = options;
  if (options.transport !== undefined) return createClient(SessionAdminService, options.transport);
  if (adminUrl === undefined) {
    if (policy !== undefined) throw new TypeError("createVerifier: a policy needs adminUrl");
    return undefined;
  }
  if (adminToken === undefined) throw new TypeError("createVerifier: adminUrl needs adminToken");
  const authenticate: Interceptor = (next) => (request) => {
    request.header.set("authorization", `Bearer ${typeof adminToken === "string" ? adminToken : adminToken()}`);
    return next(request);
  };
  // Pings find a connection that died without a word, which a stream of its own never would.
  const sessionManager = new Http2SessionManager(adminUrl, { pingIntervalMs: 2000, pingTimeoutMs: 5000 });
  signal.addEventListener("abort", () => sessionManager.abort());
  const interceptors = [authenticate];
  return createClient(
    SessionAdminService,
    createConnectTransport({ baseUrl: adminUrl, httpVersion: "2", sessionManager, interceptors }),
  );
}

/** Answers that are ready, so that the way of a known token allocates nothing. */
function promised<K extends string>(
  verdicts: { readonly [key in K]: Verdict },
): { readonly [key in K]: Promise<Verdict> } {
  return Object.fromEntries(
    Object.entries<Verdict>(verdicts).map(([reason, verdict]) => [reason, Promise.resolve(verdict)]),
  ) as { [key in K]: Promise<Verdict> };
}
