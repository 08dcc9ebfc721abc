/**
 * Decides which session a request is about, if the browser sends several refresh token cookies.
 *
 * A browser keeps a cookie of the same name for each domain and path in which it was set, and sends all of them. So after a change of
 * `COOKIE_DOMAIN` or `COOKIE_PATH`, the browser sends an old cookie beside the new one, and a sibling domain can plant a cookie. Values
 * that are not tokens of this service are ignored. If several tokens belong to one session, only the newest is used, because the browser
 * received the others before it.
 */
import type { Refused } from "../errors.ts";
import type { RefreshToken, RefreshTokens, SessionStore } from "../ports.ts";
import type { TokenFields } from "./rotation.ts";

/** The value of the cookie, or of the token request. In the rare case that the request has several different values, a list of them. */
export type PresentedCookie = string | undefined | readonly string[];

/** How many sessions the tokens of one request may belong to. The store is read once for each session. */
const MAX_SESSIONS = 4;

const AMBIGUOUS: Refused = { ok: false, reason: "ambiguous" };

/** The newest token of each session that a cookie names. */
export type PresentedTokens = readonly [RefreshToken, ...RefreshToken[]];
export type AuthenticTokens = { readonly ok: true; readonly tokens: PresentedTokens };

/** Orders the tokens of one session: positive if `a` is newer than `b`. */
export function compareNewness(a: TokenFields, b: TokenFields): number {
  return a.generation - b.generation || a.issuedAt - b.issuedAt;
}

type Parser = Pick<RefreshTokens, "parse">;

/** Verifies the refresh tokens of a request, without the store. Invalid tokens are ignored if a valid one is among them. */
export function authenticateRefreshTokens(
  refreshTokens: Parser,
  presented: PresentedCookie,
): AuthenticTokens | Refused {
  if (presented === undefined || presented === "") return { ok: false, reason: "absent" };
  if (typeof presented === "object") return parseAll(refreshTokens, presented);
  const parsed = refreshTokens.parse(presented);
  return parsed.ok ? { ok: true, tokens: [parsed.token] } : parsed;
}

function parseAll(refreshTokens: Parser, values: readonly string[]): AuthenticTokens | Refused {
  const newest = new Map<string, RefreshToken>();
  let refusal: Refused = { ok: false, reason: "absent" };
  for (const value of values) {
    const result = refreshTokens.parse(value);
    if (!result.ok) {
      // An unknown key may be a new one that is not loaded yet, so the token may be valid: this reason takes precedence over others.
      if (refusal.reason !== "unknown_key") refusal = result;
      continue;
    }
    const { token } = result;
    const known = newest.get(token.sid);
    if (known === undefined || compareNewness(token, known) > 0) newest.set(token.sid, token);
  }
  const [first, ...others] = newest.values();
  if (first === undefined) return refusal;
  return newest.size > MAX_SESSIONS ? AMBIGUOUS : { ok: true, tokens: [first, ...others] };
}

/**
 * Returns the tokens, with that of the newest live session first. If live sessions have different subjects, the request is refused: one
 * of the tokens may be planted, and nothing shows which. @throws StoreUnavailable
 */
export async function newestFirst(
  store: Pick<SessionStore, "find">,
  tokens: PresentedTokens,
): Promise<AuthenticTokens | Refused> {
  if (tokens.length === 1) return { ok: true, tokens };
  const found = await Promise.all(
    tokens.map(async (token) => {
      const result = await store.find(token.sid);
      return { token, session: result.ok ? result.session : undefined };
    }),
  );
  const subjects = new Set(found.flatMap(({ session }) => session?.subject ?? []));
  if (subjects.size > 1) return AMBIGUOUS;
  const createdAtOf = (session: (typeof found)[number]["session"]) => session?.createdAt ?? Number.NEGATIVE_INFINITY;
  found.sort((a, b) => createdAtOf(b.session) - createdAtOf(a.session) || (a.token.sid < b.token.sid ? -1 : 1));
  const [first = tokens[0], ...others] = found.map(({ token }) => token);
  return { ok: true, tokens: [first, ...others] };
}
