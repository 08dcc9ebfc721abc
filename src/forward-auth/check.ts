/** Decides about a request that a gateway describes, and says what the gateway does with it. */
import { cookieValues } from "../net/cookie-values.ts";
import {
  type Authorization,
  authorize,
  type CallerRequest,
  type Claims,
  type Rejection,
  type Verifier,
} from "../verifier/index.ts";

/** The upstream learns from these headers who calls. A request that passes gets all of them, so that none of the client's own is left. */
const IDENTITY_HEADERS = ["x-auth-subject", "x-auth-session", "x-auth-client", "x-auth-claims"] as const;
/** So many values of the cookie are tried. A browser sends one for each scope, and a sibling domain may have planted some. */
const MAX_VALUES = 4;

type Identity = Readonly<Record<(typeof IDENTITY_HEADERS)[number], string>>;
type Decision = { readonly ok: true; readonly identity: Identity } | Rejection;
/** A header of the request that the gateway asks about, by its name in lower case. */
export type HeaderOf = (name: string) => string | undefined;
/** What the gateway says about the request itself. A proof names the method and the URL that it is for (RFC 9449 section 4.3). */
type Target = {
  readonly method: string | undefined;
  /** The host that the client has named, with its port if it has named one. */
  readonly host: string | undefined;
  /** Path and query. */
  readonly path: string | undefined;
};
/** Never rejects. */
export type Check = (headerOf: HeaderOf, target: Target) => Promise<Decision>;

type Options = {
  /** The name of the cookie that holds the access token where a request has no `Authorization` header. */
  readonly cookie?: string | undefined;
  /** The origins at which clients reach the gateway. Without them tokens that are bound to a key (DPoP) are refused. */
  readonly origins?: readonly string[] | undefined;
};

export function createCheck(verifier: Verifier, { cookie, origins = [] }: Options): Check {
  return async (headerOf, target) => {
    const authorization = headerOf("authorization");
    const given = origins.length === 0 ? authorization : requestOf(headerOf, target, origins);
    const tokens = authorization === undefined && cookie !== undefined ? tokensOf(headerOf("cookie"), cookie) : [];
    const judged = await (tokens.length === 0 ? authorize(verifier, given) : judgeAll(verifier, tokens));
    return judged.ok ? { ok: true, identity: identityOf(judged.claims) } : judged;
  };
}

/** Only of a whole request can a proof be verified. */
function requestOf(headerOf: HeaderOf, target: Target, origins: readonly string[]): CallerRequest {
  const headers = { get: (name: string) => headerOf(name) ?? null };
  return { method: target.method ?? "", url: urlOf(target, origins), headers };
}

/**
 * Returns the URL by which the client has sent a request. Its origin is one of those that are configured, so that a proof for another host is
 * refused; its scheme is theirs, because TLS may end before the gateway. Empty if there is none: no proof is for that.
 */
function urlOf({ host, path }: Target, origins: readonly string[]): string {
  const origin = origins.find((known) => isAt(known, host ?? ""));
  return origin !== undefined && path?.startsWith("/") ? origin + path : "";
}

const isAt = (origin: string, host: string) =>
  /^[^/?#@\\\s]+$/.test(host) && URL.parse(origin.replace(/(?<=:\/\/).*/, host))?.origin === origin;

function tokensOf(header: string | undefined, cookie: string): readonly string[] {
  return header === undefined ? [] : [...new Set(cookieValues(header, cookie))].slice(0, MAX_VALUES);
}

/** One of several tokens must be good, and nobody may have planted another user's: all good ones are of one subject, and none is undecided. */
async function judgeAll(verifier: Verifier, tokens: readonly string[]): Promise<Authorization> {
  const decisions = await Promise.all(tokens.map((token) => authorize(verifier, `Bearer ${token}`)));
  const accepted = decisions.filter((decision) => decision.ok);
  if (new Set(accepted.map(({ claims }) => claims.sub)).size > 1) return authorize(verifier, "Bearer");
  const unavailable = decisions.find((decision) => !decision.ok && decision.status === 503);
  return unavailable ?? accepted[0] ?? (decisions[0] as Authorization);
}

/** Percent-encodes what has no place in a header: everything but visible ASCII, and the percent sign itself. */
const headerText = (text: string) => text.toWellFormed().replace(/[^!-~]|%/gu, encodeURIComponent);

function identityOf(claims: Claims): Identity {
  return {
    "x-auth-subject": headerText(claims.sub),
    "x-auth-session": claims.sid,
    "x-auth-client": headerText(claims.client_id),
    "x-auth-claims": Buffer.from(JSON.stringify(claims)).toString("base64url"),
  };
}
