import { overLimit } from "../attempts.ts";
import { type Audit, namesOf, type Requester } from "../audit.ts";
import type { DevicePresentation } from "../devices/binding.ts";
import { isProofKey, thumbprintOf } from "../devices/key.ts";
import {
  type DeviceHeaders,
  type DeviceTools,
  devicePresentation,
  noteSessionKey,
  refreshLimitKey,
  registrationOffer,
} from "../devices/presented.ts";
import type { Limited, Refused } from "../errors.ts";
import { originOf } from "../events/due-lines.ts";
import type { IssuedTokens } from "../issued.ts";
import type { LastSeen, Session } from "../model.ts";
import type {
  AccessTokens,
  PeekableRateLimit,
  Random,
  RateLimit,
  RefreshToken,
  RefreshTokens,
  RotateOutcome,
  SessionStore,
} from "../ports.ts";
import { secondsLeft } from "../time.ts";
import { newestFirst, type PresentedTokens } from "./presented-cookie.ts";
import { type RotationRefusal, refusalOfRotation } from "./refusals.ts";
import { type InvalidTarget, judgeTokenRequest, type TokenRequest, tokenPresentation } from "./token-request.ts";

type Deps = {
  readonly store: Pick<SessionStore, "rotate" | "find" | "endOwned">;
  readonly refreshTokens: Pick<RefreshTokens, "mint">;
  readonly accessTokens: Pick<AccessTokens, "issue">;
  readonly random: Pick<Random, "nonce">;
  readonly audit: Audit;
  readonly refreshLimit: RateLimit;
  readonly device: DeviceTools;
  /** Returns what a session keeps of the request that refreshes it; undefined if sessions keep nothing of it. */
  readonly lastSeen?: ((requester: Requester) => LastSeen) | undefined;
};

type Refreshed = IssuedTokens & {
  readonly ok: true;
  /** Whether the access token is usable only with a proof of the session's key (DPoP). */
  readonly isKeyBound: boolean;
  /** A challenge for the registration of a device key, if the session may have one. */
  readonly offer: string | undefined;
};

/**
 * Exchanges a refresh token for a new access token and the session's current refresh token. If a browser presents tokens of several
 * sessions, the token of the newest session is used.
 *
 * The rotation is committed before the token is signed: a client whose response is lost tries again and gets `repeat`,
 * or `recover` after the reuse interval.
 *
 * @param deviceHeaders undefined if the request presents no device
 * @param tokenRequest undefined for tokens of a cookie
 * @throws StoreUnavailable
 */
export async function refresh(
  deps: Deps,
  tokens: PresentedTokens,
  requester: Requester,
  deviceHeaders?: DeviceHeaders,
  tokenRequest?: TokenRequest,
): Promise<Refreshed | RotationRefusal | Refused | InvalidTarget | Limited> {
  const { store, device, refreshLimit, audit } = deps;
  // Nearly every request presents one token. Waiting for nothing would cost it half a microsecond.
  const ordered = tokens.length > 1 ? await newestFirst(store, tokens) : { ok: true as const, tokens };
  if (!ordered.ok) return ordered;
  const [token, ...others] = ordered.tokens;

  const { lifeMs } = device;
  // Undefined for nearly every request: it presents nothing but its token.
  const presented = tokenRequest
    ? tokenPresentation(lifeMs, tokenRequest)
    : deviceHeaders && devicePresentation(device, deviceHeaders, token.sid);
  const presentation: DevicePresentation = presented ?? { lifeMs, cookie: undefined, skipped: false };

  // The limit is checked after the MAC, so that only a holder of the session's tokens can use it up. It is checked before the rotation.
  const limitKey = presented ? refreshLimitKey(device, presented, token.sid) : token.sid;
  const retryAfterMs = refreshLimit.take(limitKey);
  if (retryAfterMs !== undefined)
    return overLimit(audit, { limit: "refresh", sid: token.sid }, retryAfterMs, requester);

  let rotated: RotateOutcome;
  try {
    rotated = await store.rotate(token.sid, token, deps.random.nonce(), presentation, deps.lastSeen?.(requester));
  } catch (error) {
    // An attempt to which the store did not reply does not count. Otherwise tabs that retry during an outage would be refused after it.
    refreshLimit.giveBack(limitKey);
    throw error;
  }
  if (!rotated.ok) return refusalOfRotation(deps, token.sid, rotated, presentation, requester);

  const { outcome, session, child, now } = rotated;
  if (presentation.proof !== undefined) noteSessionKey(device, session);
  if (rotated.device === "first_use") recordBinding(audit, session, requester);
  const judged = tokenRequest && judgeTokenRequest(tokenRequest, session);
  if (judged?.ok === false) return judged;
  const { sid, subject, actor } = session;
  audit({ event: "session_renewed", sid, subject, actor: actor?.subject, outcome }, requester);
  if (others.length > 0) await replace(deps, session, others, requester);

  return {
    ok: true,
    sid,
    accessToken: deps.accessTokens.issue(judged?.session ?? session, now, rotated.device !== "unproven"),
    refreshToken: deps.refreshTokens.mint({ sid, ...child }),
    isKeyBound: session.device !== undefined && isProofKey(session.device),
    secondsLeft: secondsLeft(session.idleExpiresAt, now),
    isPersistent: session.persistent !== false,
    // Only one of several parallel requests gets a challenge: a browser makes a key for each, and may sign only six times in nine minutes.
    offer: device.offers && outcome !== "repeat" ? registrationOffer(device, session, now) : undefined,
  };
}

function recordBinding(audit: Audit, session: Session, requester: Requester): void {
  if (session.device === undefined) return;
  const { algorithm } = session.device.key;
  audit({ event: "device_bound", ...namesOf(session), algorithm, thumbprint: thumbprintOf(session.device) }, requester);
}

/**
 * Refuses a refresh before its message is read if its session has used up its rate limit, so that the refusal costs little. Nothing is
 * counted. @param presentsDevice whether the request may prove a key: such requests have a limit of their own, which `refresh` checks
 */
export function peekRefreshLimit(
  { refreshLimit, audit }: { readonly refreshLimit: Pick<PeekableRateLimit, "peek">; readonly audit: Audit },
  [{ sid }, ...others]: PresentedTokens,
  presentsDevice: () => boolean,
  requester: Requester,
): Limited | undefined {
  // If the request presents several tokens, only the store knows which session is refreshed, so nothing can be decided before it is read.
  if (others.length > 0) return undefined;
  const retryAfterMs = refreshLimit.peek(sid);
  if (retryAfterMs === undefined || presentsDevice()) return undefined;
  return overLimit(audit, { limit: "refresh", sid }, retryAfterMs, requester);
}

/** Ends the older sessions of the same browser, because the response replaces their cookie by that of this session. */
async function replace(
  { store, audit }: Deps,
  { sid, subject }: Pick<Session, "sid" | "subject">,
  older: readonly RefreshToken[],
  requester: Requester,
): Promise<void> {
  for (const { sid: other } of older) {
    const ended = await store.endOwned(sid, other, "replaced", originOf(requester));
    if (!ended.ok) continue;
    audit({ event: "session_ended", sid: other, subject, actor: ended.actor, reason: "replaced" }, requester);
  }
}
