/** auth.admin.v1.OAuthAdminService: offers IntrospectToken and RevokeSubjectSessions in the formats of OAuth. */
import type { JsonObject } from "@bufbuild/protobuf";
import type { ServiceImpl } from "@connectrpc/connect";
import { successStatus } from "connect-http-routes";
import type { OAuthAdminService, SubjectIdentifier } from "../../../../gen/auth/admin/v1/oauth_admin_pb.ts";
import { revokeSubject } from "../../session/admin/admin.ts";
import { invalidRequest } from "../../session/errors.ts";
import { requestContextOf } from "../request-context.ts";
import { type AuthenticationDeps, authenticateByForm } from "./authentication.ts";
import type { SessionAdminServiceDeps } from "./deps.ts";
import { introspectToken } from "./introspect-token.ts";

const NO_CONTENT = 204;

type Deps = SessionAdminServiceDeps & AuthenticationDeps;

export function oauthAdminService(deps: Deps): ServiceImpl<typeof OAuthAdminService> {
  return {
    async introspect({ token, clientId: id, clientSecret: secret }, context) {
      authenticateByForm(deps, context, { id, secret });
      return { claims: await introspectionOf(deps, token) };
    },
    async revokeGlobally({ subId }, context) {
      await revokeSubject(deps, subjectOf(subId), undefined, requestContextOf(context));
      context.values.set(successStatus, NO_CONTENT);
      return {};
    },
  };
}

/** Returns the introspection response for a token, with the members of RFC 7662 section 2.2. */
async function introspectionOf(deps: SessionAdminServiceDeps, token: string): Promise<JsonObject> {
  const { active, tokenType, claims } = await introspectToken(deps, token);
  if (!active) return { active };
  // A refresh token has no `token_type` (RFC 6749 section 7.1).
  return {
    ...claims,
    active,
    ...(tokenType === "access_token" && { token_type: claims.cnf === undefined ? "Bearer" : "DPoP" }),
  };
}

/** Returns the subject that an identifier names (RFC 9493). @throws ServiceError for a format that names none */
function subjectOf(identifier: SubjectIdentifier | undefined): string {
  const { format, id, sub } = identifier ?? { format: "", id: "", sub: "" };
  if (format !== "opaque" && format !== "iss_sub") throw invalidRequest("sub_id.format", "is not opaque or iss_sub");
  const [field, subject] = format === "opaque" ? ["id", id] : ["sub", sub];
  if (subject === "") throw invalidRequest(`sub_id.${field}`, "is required");
  return subject;
}
