/** Security event tokens (RFC 8417) of OpenID CAEP 1.0, and their delivery by push (RFC 8935). */
import { secondsOf } from "../../session/time.ts";
import type { PendingEvent, SignalReason, Subscription } from "../model.ts";
import type { OutgoingRequest } from "../send/sender.ts";
import type { SendContext, SentSignal } from "./context.ts";

const CAEP = "https://schemas.openid.net/secevent/caep/event-type/";
export const SESSION_REVOKED = `${CAEP}session-revoked`;
export const TOKEN_CLAIMS_CHANGE = `${CAEP}token-claims-change`;
export const SESSION_ESTABLISHED = `${CAEP}session-established`;

/** The type of security event tokens (RFC 8417 section 2.3). */
export const EVENT_TOKEN_TYPE = "secevent+jwt";

const STREAM_EVENTS = "https://schemas.openid.net/secevent/ssf/event-type/";

/** Who caused the end of a session: `initiating_entity` of CAEP 1.0 section 2. */
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
  actor_ended: "policy",
  upstream_logout: "system",
};

export const isSignalReason = (text: string): text is SignalReason => Object.hasOwn(INITIATORS, text);

/** The claims that all security event tokens of this file have. */
type SetClaims = {
  readonly jti: string;
  readonly audience: readonly string[];
  readonly subject: object;
  readonly type: string;
  readonly event: object;
};

type Signing = Pick<SendContext, "issuer" | "now" | "signClaims">;

/** Returns a signed security event token. Unlike an access token, it has neither `sub` nor `exp` (SSF 1.0 section 4.1). */
function signedToken(
  { jti, audience, subject, type, event }: SetClaims,
  { issuer, now, signClaims }: Signing,
): string | Promise<string> {
  return signClaims(EVENT_TOKEN_TYPE, {
    iss: issuer,
    jti,
    // `txn` identifies the event, and is the same in all streams (SSF 1.0 section 4.1.9).
    txn: jti,
    iat: secondsOf(now),
    aud: audience.length === 1 ? audience[0] : audience,
    sub_id: subject,
    events: { [type]: event },
  });
}

/**
 * Returns a signed event of CAEP 1.0: `session-revoked` (section 3.1), `token-claims-change` for an update (section 3.2) or
 * `session-established` for a creation (section 3.6). The event of an update names only the version of the session: a receiver learns that
 * claims have changed, and none of their values.
 */
export function signalToken(
  signal: SentSignal,
  { audience }: { readonly audience: readonly string[] },
  signing: Signing,
): string | Promise<string> {
  const session = { format: "opaque", id: signal.sessionId };
  const user = { format: "iss_sub", iss: signing.issuer, sub: signal.subject };
  return signedToken(
    {
      jti: signal.id,
      audience,
      // The identifiers follow RFC 9493. A session of a user is a complex subject (SSF 1.0 section 3).
      subject: signal.subject === undefined ? session : { format: "complex", session, user },
      type: caepTypeOf(signal),
      event: caepEventOf(signal),
    },
    signing,
  );
}

function caepTypeOf({ reason }: SentSignal): string {
  if (reason === "updated") return TOKEN_CLAIMS_CHANGE;
  return reason === "created" ? SESSION_ESTABLISHED : SESSION_REVOKED;
}

function caepEventOf(signal: SentSignal): object {
  const event_timestamp = secondsOf(signal.happenedAt);
  const act = signal.actor === undefined ? {} : { act: { sub: signal.actor } };
  if (signal.reason === "updated") {
    return { event_timestamp, ...act, initiating_entity: "admin", claims: { sv: signal.version } };
  }
  if (signal.reason === "created") return { event_timestamp, ...act };
  return {
    event_timestamp,
    initiating_entity: INITIATORS[signal.reason as SignalReason], // The other notice is for webhooks (manage.ts).
    reason_admin: { en: signal.reason },
    ...act,
  };
}

/** Returns a signed event about a stream itself. Its subject is the stream. */
export function streamEventToken(
  { id, event }: Pick<PendingEvent, "id" | "event">,
  stream: Pick<Subscription, "id" | "audience">,
  signing: Signing,
): string | Promise<string> {
  const { type, ...properties } = event;
  const subject = { format: "opaque", id: stream.id };
  const claims = { jti: id, audience: stream.audience, subject, type: STREAM_EVENTS + type, event: properties };
  return signedToken(claims, signing);
}

/** Returns the request of RFC 8935 section 2.1. The subscription's secret is the receiver's `authorization_header`. */
export async function ssfPushRequest(
  signal: SentSignal,
  target: { readonly endpoint: string; readonly audience: readonly string[] },
  context: SendContext,
): Promise<OutgoingRequest> {
  return tokenRequest(await signalToken(signal, target, context), target, context);
}

export function tokenRequest(
  body: string,
  { endpoint }: { readonly endpoint: string },
  { secret }: Pick<SendContext, "secret">,
): OutgoingRequest {
  return {
    url: endpoint,
    headers: {
      "content-type": "application/secevent+jwt",
      accept: "application/json",
      ...(secret !== "" && { authorization: secret }),
    },
    body,
  };
}
