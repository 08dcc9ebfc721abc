/** Makes the requests of OpenID Connect Back-Channel Logout 1.0. */
import { secondsOf } from "../../session/time.ts";
import type { OutgoingRequest } from "../send/sender.ts";
import type { SendContext, SentSignal } from "./context.ts";

const LOGOUT_EVENT = "http://schemas.openid.net/event/backchannel-logout";
/** How long a logout token is valid, in seconds. Section 4 recommends a short life. Each attempt has a new token with the same `jti`. */
const LIFE_SECONDS = 120;

/** Returns the logout request of section 2.5. Its token never has a `nonce` (section 2.4). */
export async function backchannelRequest(
  signal: SentSignal,
  { endpoint, audience }: { readonly endpoint: string; readonly audience: readonly string[] },
  { issuer, now, signClaims }: Pick<SendContext, "issuer" | "now" | "signClaims">,
): Promise<OutgoingRequest> {
  const iat = secondsOf(now);
  const token = await signClaims("logout+jwt", {
    iss: issuer,
    sub: signal.subject,
    ...(signal.actor === undefined ? {} : { act: { sub: signal.actor } }),
    aud: audience.length === 1 ? audience[0] : audience,
    iat,
    exp: iat + LIFE_SECONDS,
    jti: signal.id,
    sid: signal.sessionId,
    events: { [LOGOUT_EVENT]: {} },
  });
  return {
    url: endpoint,
    headers: { "content-type": "application/x-www-form-urlencoded" },
    body: new URLSearchParams({ logout_token: token }).toString(),
  };
}
