import type { SecureClientSessionOptions } from "node:http2";
import type { Interceptor, Transport } from "@connectrpc/connect";
import { isHttpUrl } from "../platform/net/http-url.ts";
import type { Report } from "./refusals/report.ts";

export type VerifierOptions = {
  /** The issuer: `iss` of every accepted token. */
  readonly issuer: string;
  /** The audience of the verifying service, or a list of its audiences. A token's `aud` must contain one of them. */
  readonly audience: string | readonly string[];
  /**
   * The admin API, `http://…` (HTTP/2 without TLS) or `https://…`: the source of keys, revocations and introspection. Without it only
   * `jwksUrl` is read: a logout takes effect when the token expires, and `stalenessMs()` is Infinity.
   */
  readonly adminUrl?: string;
  /** Whether a token is accepted only if its client has proven possession of the session's device key. Default: false. */
  readonly requireDeviceBound?: boolean;
  /** The bearer token for the admin API, or a function that returns it, for a token that is rotated. */
  readonly adminToken?: string | (() => string);
  /** Options of `http2.connect` to `adminUrl`, such as a client certificate instead of `adminToken`. They have an effect only in Node. */
  readonly nodeOptions?: SecureClientSessionOptions;
  /** The URL of the key set, if it is not at the admin API. */
  readonly jwksUrl?: string;
  /**
   * What happens to a token while the feed is older than `maxStalenessMs`: it is checked by a call of `IntrospectToken`, or rejected with
   * `unavailable`. Default: `introspect`.
   */
  readonly policy?: "introspect" | "refuse";
  /** The greatest accepted age of the feed, in ms. Default: 5000; 0 introspects every token. The feed sends a heartbeat every second. */
  readonly maxStalenessMs?: number;
  /**
   * Polls the revocations when a token is verified and they are older than this, in ms, instead of following them: for isolates in which
   * no connection outlives a request (Workers, edge functions, service workers). A logout takes effect within this time plus 2 s, because
   * the service's own data may be 2 s old. Keys are read when a token is verified and their `max-age` is over. At most `maxStalenessMs`.
   * Default: a stream of the feed.
   */
  readonly pollIntervalMs?: number;
  /** How many verified tokens are kept in memory, about 2 KiB each. Default: 10,000; at least 2. */
  readonly cacheSize?: number;
  /** Receives events for the log. Errors that it throws are ignored. */
  readonly report?: Report;
  /**
   * The transport to the admin API, for a proxy or tests. Beware of connect-node's Http2SessionManager, which its HTTP/2 transports use by
   * default: it may end the process when the network fails.
   */
  readonly transport?: Transport;
  /** Interceptors of the calls to the admin API, for example for tracing. They are not used with `transport`. */
  readonly interceptors?: readonly Interceptor[];
  /** The `fetch` function for the key set, and outside of Node also for the admin API. Default: the `fetch` of the runtime. */
  readonly fetch?: typeof fetch;
  /** The wall clock, in ms since the epoch. Default: `Date.now`. */
  readonly clock?: () => number;
  /** A monotonic clock, in ms. Default: `performance.now`. */
  readonly monotonic?: () => number;
};

type Defaulted = "requireDeviceBound" | "policy" | "maxStalenessMs" | "cacheSize" | "fetch" | "clock";

export type Settings = Required<Pick<VerifierOptions, "issuer" | "jwksUrl" | "monotonic" | Defaulted>> & {
  readonly audiences: ReadonlySet<string>;
  readonly pollIntervalMs: number | undefined;
};

/** Applies the defaults. @throws TypeError, RangeError */
export function resolveOptions(options: VerifierOptions): Settings {
  checkOptions(options);
  const {
    issuer,
    adminUrl,
    policy = "introspect",
    maxStalenessMs = 5000,
    pollIntervalMs,
    cacheSize = 10_000,
  } = options;
  const jwksUrl = options.jwksUrl ?? new URL("/.well-known/jwks.json", adminUrl).href;
  const audiences = new Set([options.audience].flat());
  if (!(maxStalenessMs >= 0)) throw new RangeError("createVerifier: maxStalenessMs must be a number, at least 0");
  if (pollIntervalMs !== undefined && !(pollIntervalMs >= 0 && pollIntervalMs <= maxStalenessMs)) {
    throw new RangeError("createVerifier: pollIntervalMs must be a number from 0 to maxStalenessMs");
  }
  if (!(Number.isInteger(cacheSize) && cacheSize >= 2)) {
    throw new RangeError("createVerifier: cacheSize must be a whole number, at least 2");
  }
  const { requireDeviceBound = false } = options;
  const { clock = Date.now, monotonic = () => performance.now(), fetch = globalThis.fetch } = options;
  const defaulted = { requireDeviceBound, policy, maxStalenessMs, cacheSize, fetch, clock };
  return { issuer, audiences, jwksUrl, pollIntervalMs, monotonic, ...defaulted };
}

/**
 * Checks the options at the start, so that a variable that is not set does not refuse every token later.
 * @throws TypeError for an option that is missing or of the wrong type
 */
function checkOptions(options: { readonly [name: string]: unknown }): void {
  if (typeof options !== "object" || options === null) throw new TypeError("createVerifier needs options");
  const { issuer, audience, adminUrl, jwksUrl, adminToken, policy, revocations, report } = options;
  requireText("issuer", issuer);
  const audiences: readonly unknown[] = [audience].flat();
  if (audiences.length === 0) throw fault("audience", audience, "a text, or a list of texts");
  for (const each of audiences) requireText("audience", each);
  if (adminUrl === undefined && jwksUrl === undefined) throw new TypeError("createVerifier needs adminUrl or jwksUrl");
  checkUrl("adminUrl", adminUrl);
  checkUrl("jwksUrl", jwksUrl);
  const hasToken = adminToken === undefined || typeof adminToken === "function";
  if (!hasToken) requireText("adminToken", adminToken);
  if (policy !== undefined && policy !== "introspect" && policy !== "refuse")
    throw fault("policy", policy, "one of introspect, refuse");
  // Without this check, a verifier that lived on status lists would accept the tokens of ended sessions.
  if (revocations !== undefined) {
    throw new TypeError("createVerifier: revocations was removed: sessions that end are learned from adminUrl");
  }
  if (report !== undefined && typeof report !== "function") throw fault("report", report, "a function");
}

function requireText(name: string, value: unknown): void {
  if (typeof value !== "string" || value.trim() === "") throw fault(name, value, "a text that is not empty");
}

function checkUrl(name: string, value: unknown): void {
  if (value !== undefined && !isHttpUrl(value))
    throw fault(name, value, "an http:// or https:// URL without a password");
}

/** The value is not in the message, because it may be a secret in the wrong place. */
function fault(name: string, value: unknown, wanted: string): TypeError {
  const given = value === "" ? "empty" : value === null || value === undefined ? String(value) : `a ${typeof value}`;
  return new TypeError(`createVerifier: ${name} must be ${wanted}, and is ${given}`);
}
