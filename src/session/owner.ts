/** What the holder of an access token does with sessions: log out, see, revoke. */
import type { Audit } from "./audit.ts";
import type { Refused } from "./errors.ts";
import type { SessionId } from "./model.ts";
import type { AccessClaims, AccessTokens, SessionPage, SessionStore } from "./ports.ts";

type Deps<Verb extends keyof SessionStore> = { readonly store: Pick<SessionStore, Verb>; readonly audit: Audit };

/** Verifies a bearer access token; whether its session lives is for the store to say, in the same step as the deed. */
export function authenticate(tokens: Pick<AccessTokens, "verify">, bearer: string | undefined): AccessClaims | Refused {
  if (bearer === undefined) return { refused: "absent" };
  const claims = tokens.verify(bearer);
  return typeof claims === "string" ? { refused: claims } : claims;
}

const ended = (caller: AccessClaims): Refused => ({ refused: "revoked", sid: caller.sid });

/**
 * Ends the caller's session. A session that the store has lost is marked all the same: its access
 * tokens may live.
 */
export async function logout(deps: Deps<"end">, caller: AccessClaims): Promise<Refused | undefined> {
  const outcome = await deps.store.end(caller.sid, "logout");
  if (outcome === "already") return ended(caller);
  deps.audit({ event: "session_ended", sid: caller.sid, subject: caller.sub, reason: "logout" });
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
): Promise<"ended" | "not_found" | Refused> {
  if (target === undefined) return (await deps.store.find(caller.sid)).status === "live" ? "not_found" : ended(caller);
  const outcome = await deps.store.endOwned(caller.sid, target, "revoked_by_owner");
  if (outcome === "actor_ended") return ended(caller);
  if (outcome === "ended") {
    deps.audit({ event: "session_ended", sid: target, subject: caller.sub, reason: "revoked_by_owner" });
  }
  return outcome;
}

/** Ends every session of the caller but the one that asks. */
export async function revokeOthers(
  deps: Deps<"endAll">,
  caller: AccessClaims,
): Promise<{ readonly count: number } | Refused> {
  const outcome = await deps.store.endAll(caller.sub, "revoked_others", { except: caller.sid, actor: caller.sid });
  if (outcome === "actor_ended") return ended(caller);
  for (const sid of outcome.ended) {
    deps.audit({ event: "session_ended", sid, subject: caller.sub, reason: "revoked_others" });
  }
  return { count: outcome.ended.length };
}
