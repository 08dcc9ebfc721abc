import type { JsonObject } from "@bufbuild/protobuf";
import { TokenType } from "../../../../gen/auth/admin/v1/session_admin_pb.ts";
import { type Introspection, introspect } from "../../session/admin/introspect.ts";
import { authenticationClaims, introspectedClaims } from "../../session/claims.ts";
import { isDeviceBound } from "../../session/model.ts";
import { secondsOf } from "../../session/time.ts";
import { numberOf } from "../messages.ts";
import type { SessionAdminServiceDeps } from "./deps.ts";

export async function introspectToken(deps: SessionAdminServiceDeps, token: string) {
  const result = await introspect(deps, token);
  if (!result.active) return { active: false };
  const { tokenType } = result;
  const claims = tokenType === "access_token" ? result.claims : refreshTokenClaims(deps, result);
  return { active: true, tokenType, type: numberOf(TokenType, tokenType), claims: claims as JsonObject };
}

/** Returns the claims that an access token of the session would have, with the issue and expiry times of the refresh token. */
function refreshTokenClaims(
  { issuer, store }: SessionAdminServiceDeps,
  { session, issuedAt }: Extract<Introspection, { readonly tokenType: "refresh_token" }>,
) {
  const shiftMs = store.shiftMs(session);
  return {
    iss: issuer,
    sub: session.subject,
    aud: session.audience,
    ...introspectedClaims(session, isDeviceBound(session)),
    sid: session.sid,
    ...(session.authentication && authenticationClaims(session.authentication)),
    iat: secondsOf(issuedAt, shiftMs),
    exp: secondsOf(session.idleExpiresAt, shiftMs),
  };
}
