/** What a refresh at the token endpoint presents and asks for, besides the refresh token. */
import type { DevicePresentation } from "../devices/binding.ts";
import type { KeyProof } from "../devices/key.ts";
import type { Refused } from "../errors.ts";
import { audienceFor, audiencesOf, type Session } from "../model.ts";

export type TokenRequest = {
  readonly clientId: string;
  readonly proof?: KeyProof | undefined;
  /** The audiences that the access token is to have (RFC 8707); if there are none, all that the session has. */
  readonly resources?: readonly string[];
};

/** The request asks for an access token for an audience that the session does not have. */
export type InvalidTarget = { readonly ok: false; readonly reason: "invalid_target" };

export function tokenPresentation(lifeMs: number, { clientId, proof }: TokenRequest): DevicePresentation {
  return { lifeMs, cookie: undefined, skipped: false, transport: "token", ...(proof && { proof, clientId }) };
}

/**
 * Returns the session with the audiences that the request asks for, or why the request is refused. It runs after the rotation. A refusal at
 * that point harms nobody: the rotation binds a key only for the session's own client (devices/binding.ts), and that client can present its
 * refresh token again.
 */
export function judgeTokenRequest(
  { clientId, resources = [] }: TokenRequest,
  session: Session,
): { readonly ok: true; readonly session: Session } | Refused | InvalidTarget {
  if (clientId !== session.clientId) return { ok: false, reason: "wrong_client", sid: session.sid };
  if (resources.length === 0) return { ok: true, session };
  const ofSession = audiencesOf(session.audience);
  const audience = audienceFor(resources, (each) => ofSession.includes(each));
  if (audience === undefined) return { ok: false, reason: "invalid_target" };
  return { ok: true, session: { ...session, audience } };
}
