/** Decides about a request that a gateway describes, and returns what the gateway must do with it. */
import { cookieValues } from "../../platform/net/cookie-values.ts";
import { isSafe, isSameOrigin } from "../../server/same-origin.ts";
import {
  type Authorization,
  authorize,
  type CallerRequest,
  type Claims,
  type Decider,
  type Rejection,
} from "../../verifier/index.ts";

/**
 * The headers that identify the caller to the upstream. A request that passes gets all of them, in place of headers that the client sent.
 */
const IDENTITY_HEADERS = ["x-auth-subject", "x-auth-session", "x-auth-client", "x-auth-claims"] as const;
/** How many values of the cookie are tried. Browsers send one for each domain and path; a sibling domain may have planted some. */
const MAX_VALUES = 4;

type Identity = Readonly<Record<(typeof IDENTITY_HEADERS)[number], string>>;
export type AuthRefusal = Omit<Rejection, "reason" | "status"> & {
  readonly status: Rejection["status"] | 302 | 403;
  /** The reason, for the log. `ended`: the browser's cookies are of no live session. */
  readonly reason: Rejection["reason"] | "ended" | "cross_site" | "sign_in_loop";
};
export type AuthDecision = ({ readonly ok: true; readonly identity: Identity } | AuthRefusal) & {
  /** The `Set-Cookie` values for the browser. */
  readonly cookies?: readonly string[];
};
/** Returns a header of the request that the gateway describes, by its name in lower case. */
export type HeaderOf = (name: string) => string | undefined;
/** The gateway's description of the request. A proof contains the method and the URL that it is for (RFC 9449 section 4.3). */
export type Target = {
  readonly method: string | undefined;
  /** The host to which the client sent the request, with its port if the client named one. */
  readonly host: string | undefined;
  readonly path: string | undefined;
  /** The network address of the gateway. */
  readonly gateway?: string | undefined;
};
/** Decides about a request. It never rejects. */
export type AuthCheck = (headerOf: HeaderOf, target: Target) => Promise<AuthDecision>;

export type CheckOptions = {
  /** The name of the cookie that contains the access token if a request has no `Authorization` header. */
  readonly cookie?: string | undefined;
  /** The origins at which clients reach the gateway. Without them, tokens that are bound to a key (DPoP) are refused. */
  readonly origins?: readonly string[] | undefined;
  /** Decides about requests without `Authorization`, in place of the cookie alone (browsers.ts). */
  readonly browsers?: AuthCheck | undefined;
};

export function createCheck(verifier: Decider, { cookie, origins = [], browsers }: CheckOptions): AuthCheck {
  return async (headerOf, target) => {
    const authorization = headerOf("authorization");
    if (authorization === undefined) {
      const tokens = cookie === undefined ? [] : tokensOf(headerOf("cookie"), cookie);
      if ((browsers !== undefined || tokens.length > 0) && isForeign(headerOf, target, origins)) return FOREIGN;
      if (browsers !== undefined) return browsers(headerOf, target);
      if (tokens.length > 0) return decisionOf(await judgeAll(verifier, tokens));
    }
    const given = origins.length === 0 ? authorization : requestOf(headerOf, target, origins);
    return decisionOf(await authorize(verifier, given));
  };
}

const decisionOf = (judged: Authorization): AuthDecision =>
  judged.ok ? { ok: true, identity: identityOf(judged.claims) } : judged;

const FOREIGN: AuthRefusal = {
  ok: false,
  status: 403,
  reason: "cross_site",
  headers: { "content-type": "application/json" },
  body: '{"error":{"code":"E403_FORBIDDEN","message":"cross-site request"}}',
};

/** The headers of which a WebSocket's request has at least one: over HTTP/2 (RFC 8441) it has no key, and gateways add `Upgrade`. */
const OF_WEBSOCKETS = ["sec-websocket-key", "upgrade"];

/**
 * Returns whether a page of another site made the browser send its cookies with a request that may change something (CSRF). A WebSocket
 * begins with a GET, but its cookies authenticate everything that follows.
 */
function isForeign(headerOf: HeaderOf, { method, host }: Target, origins: readonly string[]): boolean {
  const isWebSocket = OF_WEBSOCKETS.some((name) => headerOf(name) !== undefined);
  if (isSafe({ method: method ?? "GET" }) && !isWebSocket) return false;
  const headers = { get: (name: string) => (name === "x-forwarded-host" ? host : headerOf(name)) ?? null };
  return !isSameOrigin({ method: method ?? "GET", headers }, origins);
}

/** Returns the whole request if it is known, because a proof can be verified only then. */
function requestOf(headerOf: HeaderOf, target: Target, origins: readonly string[]): CallerRequest {
  const headers = { get: (name: string) => headerOf(name) ?? null };
  return { method: target.method ?? "", url: urlOf(target, origins), headers };
}

/**
 * Returns the URL that the client has called, at one of the configured origins, so that a proof for another host is refused. Otherwise
 * returns an empty text, for which no proof is valid. The scheme is the configured one, because TLS may end before the gateway.
 */
function urlOf({ host, path }: Target, origins: readonly string[]): string {
  const origin = originAt(host, origins);
  return origin !== undefined && path?.startsWith("/") ? origin + path : "";
}

export const originAt = (host: string | undefined, origins: readonly string[]): string | undefined =>
  origins.find((origin) => isAt(origin, host ?? ""));

const isAt = (origin: string, host: string) =>
  /^[^/?#@\\\s]+$/.test(host) && URL.parse(origin.replace(/(?<=:\/\/).*/, host))?.origin === origin;

function tokensOf(header: string | undefined, cookie: string): readonly string[] {
  return header === undefined ? [] : [...new Set(cookieValues(header, cookie))].slice(0, MAX_VALUES);
}

/**
 * Decides about several tokens. At least one must be valid, and no verdict may be unknown. All valid ones must have the same subject,
 * because somebody may have planted another user's token.
 */
async function judgeAll(verifier: Decider, tokens: readonly string[]): Promise<Authorization> {
  const decisions = await Promise.all(tokens.map((token) => authorize(verifier, `Bearer ${token}`)));
  const accepted = decisions.filter((decision) => decision.ok);
  if (new Set(accepted.map(({ claims }) => claims.sub)).size > 1) return authorize(verifier, "Bearer");
  const unavailable = decisions.find((decision) => !decision.ok && decision.status === 503);
  return unavailable ?? accepted[0] ?? (decisions[0] as Authorization);
}

/** Percent-encodes the characters that a header must not contain: everything except visible ASCII, and the percent sign itself. */
const headerText = (text: string) => text.toWellFormed().replace(/[^!-~]|%/gu, encodeURIComponent);

export function identityOf(claims: Pick<Claims, "sub" | "sid"> & { readonly client_id?: unknown }): Identity {
  return {
    "x-auth-subject": headerText(claims.sub),
    "x-auth-session": claims.sid,
    "x-auth-client": headerText(String(claims.client_id)),
    "x-auth-claims": Buffer.from(JSON.stringify(claims)).toString("base64url"),
  };
}
