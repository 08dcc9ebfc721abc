/** The user of a request, and how it is read from the access token in the cookies. */
import { distinctValues, presentedBy } from "./cookies.ts";

/** The claims of a verified access token. */
export type Claims = {
  readonly sub: string;
  readonly sid: string;
  /** The expiry in seconds since the epoch. */
  readonly exp: number;
  readonly [name: string]: unknown;
};

/** The verifier that the kit needs. `createVerifier` of `@session-service/verifier` creates one. */
export interface TokenVerifier {
  verify(
    token: string,
  ): Promise<{ readonly ok: true; readonly claims: Claims } | { readonly ok: false; readonly reason: string }>;
}

/**
 * - `active`: somebody is signed in.
 * - `ended`: nobody is signed in.
 * - `unavailable`: the kit cannot determine the state now. Show that, redirect nobody to the login, and clear no cookie.
 */
export type User =
  | { readonly state: "active"; readonly claims: Claims; readonly accessToken: string }
  | { readonly state: "ended" }
  | {
      readonly state: "unavailable";
      /** No adapter has seen the request whose user the application asked for. In Next.js, `matcher` of `proxy.ts` excludes its path. */
      readonly reason?: "adapter_missing";
    };

export const ENDED: User = { state: "ended" };
export const UNAVAILABLE: Extract<User, { readonly state: "unavailable" }> = { state: "unavailable" };

type ReaderDeps = { readonly verifier: TokenVerifier; readonly accessCookie: string; readonly refreshCookie: string };

export function createUserReader({ verifier, accessCookie, refreshCookie }: ReaderDeps) {
  /** Returns the user of an access token. @param isEnd whether a refusal for this reason means that nobody is signed in */
  async function userOf(accessToken: string | undefined, isEnd: (reason: string) => boolean): Promise<User> {
    if (!accessToken) return ENDED;
    const verdict = await verifier.verify(accessToken);
    if (verdict.ok) return { state: "active", claims: verdict.claims, accessToken };
    return isEnd(verdict.reason) ? ENDED : UNAVAILABLE;
  }

  /** Returns the user of the access token in the request's cookies, which may be old. */
  async function presentedUser(headers: Pick<Headers, "get">): Promise<User> {
    const values = distinctValues(headers.get("cookie"), accessCookie);
    // One of several access tokens may have been set by a sibling domain.
    const user = await userOf(values.length === 1 ? values[0] : undefined, (reason) => reason !== "unavailable");
    // A sibling domain may also have set the access token of another user. So it must be of the same session as the refresh token.
    const isOwn = user.state !== "active" || (presentedBy(headers, refreshCookie)?.isOf(user.claims.sid) ?? true);
    return isOwn ? user : ENDED;
  }

  return { userOf, presentedUser };
}
