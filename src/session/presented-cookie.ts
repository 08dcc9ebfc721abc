/**
 * The refresh token cookie of a request: which session a browser means that sends several values.
 *
 * A browser keeps a cookie of the same name for each domain and path in which it was set, and sends all of them. So a changed
 * `COOKIE_DOMAIN` or `COOKIE_PATH` leaves an old one beside the new one, and a sibling domain can plant one. Values that are no
 * tokens of ours mean nothing. Of one session the newest token counts: the others are what its browser had before.
 */
import type { Refused } from "./errors.ts";
import type { RefreshToken, RefreshTokens, SessionStore } from "./ports.ts";
import type { PresentedToken } from "./rotation.ts";

/** Nearly always one value. Several are different ones. */
export type PresentedCookie = string | undefined | readonly string[];

/** How many sessions the tokens of one request may belong to: the store is asked for each. */
const MAX_SESSIONS = 4;

const AMBIGUOUS: Refused = { ok: false, reason: "ambiguous" };

export type CookieDeps = {
  readonly store: Pick<SessionStore, "find">;
  readonly refreshTokens: Pick<RefreshTokens, "parse">;
};

/** The newest token of each session, the newest live session first. */
export type AuthenticTokens = { readonly ok: true; readonly tokens: readonly [RefreshToken, ...RefreshToken[]] };

/** Orders the tokens of one session: positive if `a` is newer than `b`. */
export function compareAge(a: PresentedToken, b: PresentedToken): number {
  return a.generation - b.generation || a.issuedAt - b.issuedAt;
}

/** The token that counts, and of several sessions the tokens of the others. */
export type AuthenticCookie = {
  readonly ok: true;
  readonly token: RefreshToken;
  readonly others?: readonly RefreshToken[];
};

/**
 * Verifies the refresh token of a cookie; of several, that of the newest live session. The store decides whether its session is live
 * in the step that acts on it.
 *
 * @returns a promise only where the store has to be asked which session that is
 */
export function authenticateCookie(
  deps: CookieDeps,
  cookie: PresentedCookie,
): AuthenticCookie | Refused | Promise<AuthenticCookie | Refused> {
  if (cookie === undefined || cookie === "") return { ok: false, reason: "absent" };
  return typeof cookie === "string"
    ? deps.refreshTokens.parse(cookie)
    : authenticateCookies(deps, cookie).then(firstOf);
}

function firstOf(result: AuthenticTokens | Refused): AuthenticCookie | Refused {
  if (!result.ok) return result;
  const [token, ...others] = result.tokens;
  return { ok: true, token, others };
}

/** Verifies the refresh tokens of a cookie, for all that its browser may be signed in by. @throws StoreUnavailable */
export async function authenticateCookies(
  deps: CookieDeps,
  cookie: PresentedCookie,
): Promise<AuthenticTokens | Refused> {
  if (typeof cookie === "object") {
    const parsed = parseAll(deps, cookie);
    return parsed.ok && parsed.tokens.length > 1 ? order(deps, parsed.tokens) : parsed;
  }
  const one = await authenticateCookie(deps, cookie);
  return one.ok ? { ok: true, tokens: [one.token] } : one;
}

/** The tokens among the values, the newest of each session. */
export function parseAll(
  { refreshTokens }: Pick<CookieDeps, "refreshTokens">,
  values: readonly string[],
): AuthenticTokens | Refused {
  const newest = new Map<string, RefreshToken>();
  let refusal: Refused = { ok: false, reason: "absent" };
  for (const value of values) {
    const result = refreshTokens.parse(value);
    if (!result.ok) {
      // A key that is not loaded yet is no proof of anything: it is reported before the others.
      if (refusal.reason !== "unknown_key") refusal = result;
      continue;
    }
    const { token } = result;
    const known = newest.get(token.sid);
    if (known === undefined || compareAge(token, known) > 0) newest.set(token.sid, token);
  }
  const [first, ...others] = newest.values();
  if (first === undefined) return refusal;
  return newest.size > MAX_SESSIONS ? AMBIGUOUS : { ok: true, tokens: [first, ...others] };
}

/**
 * The newest live session first. Live sessions of different subjects are refused: one of them may be planted, and nobody can say which.
 * One that is not live decides nothing.
 *
 * @throws StoreUnavailable
 */
async function order({ store }: CookieDeps, tokens: AuthenticTokens["tokens"]): Promise<AuthenticTokens | Refused> {
  const found = await Promise.all(
    tokens.map(async (token) => {
      const result = await store.find(token.sid);
      return { token, session: result.ok ? result.session : undefined };
    }),
  );
  const subjects = new Set(found.flatMap(({ session }) => session?.subject ?? []));
  if (subjects.size > 1) return AMBIGUOUS;
  const age = (session: (typeof found)[number]["session"]) => session?.createdAt ?? Number.NEGATIVE_INFINITY;
  found.sort((a, b) => age(b.session) - age(a.session) || (a.token.sid < b.token.sid ? -1 : 1));
  const [first = tokens[0], ...others] = found.map(({ token }) => token);
  return { ok: true, tokens: [first, ...others] };
}
