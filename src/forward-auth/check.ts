/** Decides about a request that a gateway describes, and says what the gateway does with it. */
import { cookieValues } from "../net/cookie-values.ts";
import { type Authorization, authorize, type Claims, type Rejection, type Verifier } from "../verifier/index.ts";

/** The upstream learns from these headers who calls. A request that passes gets all of them, so that none of the client's own is left. */
const IDENTITY_HEADERS = ["x-auth-subject", "x-auth-session", "x-auth-client", "x-auth-claims"] as const;
/** So many values of the cookie are tried. A browser sends one for each scope, and a sibling domain may have planted some. */
const MAX_VALUES = 4;

type Identity = Readonly<Record<(typeof IDENTITY_HEADERS)[number], string>>;
type Decision = { readonly ok: true; readonly identity: Identity } | Rejection;
/** A header of the request that the gateway asks about, by its name in lower case. */
export type HeaderOf = (name: string) => string | undefined;
/** Never rejects. */
export type Check = (headerOf: HeaderOf) => Promise<Decision>;

/** @param cookie the name of the cookie that holds the access token where a request has no `Authorization` header */
export function createCheck(verifier: Verifier, cookie: string | undefined): Check {
  return async (headerOf) => {
    const authorization = headerOf("authorization");
    const tokens = authorization === undefined && cookie !== undefined ? tokensOf(headerOf("cookie"), cookie) : [];
    const judged = await (tokens.length === 0 ? authorize(verifier, authorization) : judgeAll(verifier, tokens));
    return judged.ok ? { ok: true, identity: identityOf(judged.claims) } : judged;
  };
}

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
