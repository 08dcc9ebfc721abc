/** What the holder of an access token does with sessions: log out, see, revoke. */
import type { Audit, Requester } from "./audit.ts";
import type { Refused } from "./errors.ts";
import type { SessionId } from "./model.ts";
import type { AccessClaims, AccessTokens, RefreshTokens, SessionPage, SessionStore } from "./ports.ts";
import { authenticateCookie, type PresentedCookie } from "./refresh.ts";

type Deps<Verb extends keyof SessionStore> = { readonly store: Pick<SessionStore, Verb>; readonly audit: Audit };

type Credentials = {
  readonly accessTokens: Pick<AccessTokens, "verify" | "verifyExpired">;
  readonly refreshTokens: Pick<RefreshTokens, "parse">;
  /** Whose access tokens may act on sessions here: a token that was meant for another service must not. */
  readonly audiences: ReadonlySet<string>;
};

/** Verifies a bearer access token. Whether its session is live is for the store to say, in the step that acts on it. */
export function authenticate(
  { accessTokens, audiences }: Pick<Credentials, "accessTokens" | "audiences">,
  bearer: string | undefined,
): AccessClaims | Refused {
  if (bearer === undefined) return { refused: "absent" };
  const claims = accessTokens.verify(bearer);
  return typeof claims === "string" ? { refused: claims } : forUs(claims, audiences);
}

function forUs(claims: AccessClaims, audiences: ReadonlySet<string>): AccessClaims | Refused {
  return claims.aud.some((each) => audiences.has(each)) ? claims : { refused: "wrong_audience", sid: claims.sid };
}

const ended = (caller: AccessClaims): Refused => ({ refused: "revoked", sid: caller.sid });

/**
 * Ends the session of a bearer access token. A session that the store has lost is marked all the same: its access tokens
 * may be valid. One that has expired counts together with the refresh token of the same live session: a client that is
 * refused then believes to be logged out, and is not.
 *
 * @param cookie the refresh token cookie of the same request
 */
export async function logout(
  deps: Deps<"end"> & Credentials,
  bearer: string | undefined,
  cookie: PresentedCookie,
  requester: Requester,
): Promise<Refused | undefined> {
  const caller = authenticate(deps, bearer);
  if ("refused" in caller) {
    return caller.refused === "expired" && bearer !== undefined
      ? logoutExpired(deps, bearer, cookie, requester)
      : caller;
  }
  const outcome = await deps.store.end(caller.sid, "logout");
  if (outcome === "already") return ended(caller);
  deps.audit({ event: "session_ended", sid: caller.sid, subject: caller.sub, reason: "logout" }, requester);
  return undefined;
}

async function logoutExpired(
  deps: Deps<"end"> & Credentials,
  bearer: string,
  cookie: PresentedCookie,
  requester: Requester,
): Promise<Refused | undefined> {
  const claims = deps.accessTokens.verifyExpired(bearer);
  if (typeof claims === "string") return { refused: claims };
  const caller = forUs(claims, deps.audiences);
  if ("refused" in caller) return caller;
  const token = authenticateCookie(deps.refreshTokens, cookie);
  if ("refused" in token || token.sid !== caller.sid) return { refused: "expired", sid: caller.sid };
  const outcome = await deps.store.end(caller.sid, "logout");
  if (outcome !== "ended") return ended(caller);
  deps.audit({ event: "session_ended", sid: caller.sid, subject: caller.sub, reason: "logout" }, requester);
  return undefined;
}

/**
 * Ends the session of a refresh token, of any generation: only its client and whoever stole from it can have it, and both
 * may end the session. One that has ended already is no error.
 */
export async function logoutByCookie(
  deps: Deps<"end"> & Pick<Credentials, "refreshTokens">,
  cookie: PresentedCookie,
  requester: Requester,
): Promise<Refused | undefined> {
  const token = authenticateCookie(deps.refreshTokens, cookie);
  if ("refused" in token) return token;
  const outcome = await deps.store.end(token.sid, "logout");
  if (outcome === "ended") deps.audit({ event: "session_ended", sid: token.sid, reason: "logout" }, requester);
  return undefined;
}

export async function listOwn(
  deps: Pick<Deps<"find" | "list">, "store">,
  caller: AccessClaims,
  limit: number,
  from: string | undefined,
): Promise<SessionPage | Refused> {
  const own = await deps.store.find(caller.sid);
  if (own.status !== "live") return ended(caller);
  return deps.store.list(caller.sub, limit, from);
}

/** @param target undefined for a text that can be no session's id: no answer may tell it from an unknown one */
export async function revokeOwn(
  deps: Deps<"find" | "endOwned">,
  caller: AccessClaims,
  target: SessionId | undefined,
  requester: Requester,
): Promise<"ended" | "not_found" | Refused> {
  if (target === undefined) return (await deps.store.find(caller.sid)).status === "live" ? "not_found" : ended(caller);
  const outcome = await deps.store.endOwned(caller.sid, target, "revoked_by_owner");
  if (outcome === "actor_ended") return ended(caller);
  if (outcome === "ended") {
    deps.audit({ event: "session_ended", sid: target, subject: caller.sub, reason: "revoked_by_owner" }, requester);
  }
  return outcome;
}

/** Ends every session of the caller but the one that asks. */
export async function revokeOthers(
  deps: Deps<"endAll">,
  caller: AccessClaims,
  requester: Requester,
): Promise<{ readonly count: number } | Refused> {
  const outcome = await deps.store.endAll(caller.sub, "revoked_others", { except: caller.sid, actor: caller.sid });
  if (outcome === "actor_ended") return ended(caller);
  for (const sid of outcome.ended) {
    deps.audit({ event: "session_ended", sid, subject: caller.sub, reason: "revoked_others" }, requester);
  }
  return { count: outcome.ended.length };
}
