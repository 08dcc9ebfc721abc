/** Security event tokens (RFC 8417) of OpenID CAEP 1.0, and their delivery by push (RFC 8935). */
import { secondsOf } from "../../session/time.ts";
import type { SignalReason } from "../model.ts";
import type { OutgoingRequest } from "../send/sender.ts";
import type { RequestContext, SentSignal } from "./context.ts";

export const SESSION_REVOKED = "https://schemas.openid.net/secevent/caep/event-type/session-revoked";

/** Who brought the end about: `initiating_entity` of CAEP 1.0 section 2. */
const INITIATORS: Readonly<Record<SignalReason, "admin" | "user" | "policy" | "system">> = {
  logout: "user",
  revoked_by_owner: "user",
  revoked_others: "user",
  revoked_by_admin: "admin",
  revoked_subject: "admin",
  revoked_all: "admin",
  session_limit: "policy",
  replaced: "user",
  reuse: "policy",
  expired: "policy",
};

/**
 * Returns a signed `session-revoked` (CAEP 1.0 section 3.1). A token of SSF has neither `sub` nor `exp` (SSF 1.0 section 4.1), so it can
 * never be taken for an access token.
 */
function sessionRevokedToken(
  signal: SentSignal,
  { audience }: { readonly audience: readonly string[] },
  { issuer, now, signClaims }: Pick<RequestContext, "issuer" | "now" | "signClaims">,
): string {
  const session = { format: "opaque", id: signal.sessionId };
  const user = { format: "iss_sub", iss: issuer, sub: signal.subject };
  return signClaims("secevent+jwt", {
    iss: issuer,
    jti: signal.id,
    iat: secondsOf(now),
    aud: audience.length === 1 ? audience[0] : audience,
    // Identifiers of RFC 9493: a session of a user is a complex subject (SSF 1.0 section 3).
    sub_id: signal.subject === undefined ? session : { format: "complex", session, user },
    events: {
      [SESSION_REVOKED]: {
        event_timestamp: secondsOf(signal.endedAt),
        initiating_entity: INITIATORS[signal.reason],
        reason_admin: { en: signal.reason },
      },
    },
  });
}

/** Returns the request of RFC 8935 section 2.1. The subscription's secret is the receiver's `authorization_header`. */
export function ssfPushRequest(
  signal: SentSignal,
  target: { readonly endpoint: string; readonly audience: readonly string[] },
  context: RequestContext,
): OutgoingRequest {
  const { secret } = context;
  return {
    url: target.endpoint,
    headers: {
      "content-type": "application/secevent+jwt",
      accept: "application/json",
      ...(secret === "" ? {} : { authorization: secret }),
    },
    body: sessionRevokedToken(signal, target, context),
  };
}
