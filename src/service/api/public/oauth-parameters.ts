/** What the grants of the token endpoint have in common. */
import type { GrantTokenRequest } from "../../../../gen/auth/v1/oauth_pb.ts";
import type { SessionId } from "../../session/model.ts";
import type { AccessToken, SessionStore } from "../../session/ports.ts";
import { type StoreMs, toWallClock } from "../../session/time.ts";
import { invalidTarget } from "../errors/oauth-errors.ts";

/** Matches an absolute URI without a fragment (RFC 3986 section 4.3, RFC 8707 section 2). */
const RESOURCE = /^[a-z][a-z\d+.-]*:[!"$-~]+$/i;

/** Returns the resources that a request names. @throws OAuth's `invalid_target` */
export function resourcesOf({ resource }: Pick<GrantTokenRequest, "resource">): readonly string[] {
  if (!resource.every((each) => RESOURCE.test(each))) {
    throw invalidTarget("resource: must be an absolute URI without a fragment");
  }
  return resource;
}

/** Returns in how many seconds a new token expires; at least 1, because a response does not contain 0 (composition/public-api.ts). */
export function expiresIn(
  store: Pick<SessionStore, "shiftMs">,
  sid: SessionId,
  { expiresAt }: AccessToken,
  now: StoreMs,
): number {
  return Math.max(1, Math.floor((expiresAt - toWallClock(now, store.shiftMs({ sid }))) / 1000));
}
