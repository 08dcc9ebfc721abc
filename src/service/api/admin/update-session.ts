import type { FieldMask } from "@bufbuild/protobuf/wkt";
import type { HandlerContext } from "@connectrpc/connect";
import {
  AccessTokenPolicy,
  type UpdateSessionRequest,
  type UpdateSubjectSessionsRequest,
} from "../../../../gen/auth/admin/v1/session_admin_pb.ts";
import { update, updateSubject } from "../../session/admin/update.ts";
import { invalidRequest, ServiceError } from "../../session/errors.ts";
import type { Session } from "../../session/model.ts";
import type { SessionChange } from "../../session/ports.ts";
import { rateLimited } from "../errors/connect-errors.ts";
import { audienceOf, claimsOf, sessionIdOf } from "../messages.ts";
import { requestContextOf } from "../request-context.ts";
import { requireAccessCookie } from "./access-cookie.ts";
import type { SessionAdminServiceDeps } from "./deps.ts";
import { sessionMessage } from "./session-fields.ts";

export const isRefresh = (policy: AccessTokenPolicy) => policy === AccessTokenPolicy.REFRESH;

export async function updateSession(
  deps: SessionAdminServiceDeps,
  request: UpdateSessionRequest,
  context: HandlerContext,
) {
  const sid = sessionIdOf("session_id", request.sessionId);
  const change = { ...changeOf(request), ...versionOf(request.etag) };
  const found = deps.cookie.setsAccess ? await deps.store.find(sid) : undefined;
  if (found?.ok) requireFitting(deps, found.session, change);
  const updated = await update(deps, sid, change, requestContextOf(context));
  if (updated.ok) return { session: sessionMessage(updated.session, deps.store.shiftMs(updated.session)) };
  if (updated.reason === "rate_limited") throw rateLimited(updated.retryAfterMs);
  throw new ServiceError(updated.reason === "conflict" ? "E409_CONFLICT" : "E404_NOT_FOUND");
}

export async function updateSubjectSessions(
  deps: SessionAdminServiceDeps,
  request: UpdateSubjectSessionsRequest,
  context: HandlerContext,
) {
  const change = changeOf(request);
  const check = (session: Session) => requireFitting(deps, session, change);
  const updated = await updateSubject(deps, request.subject, change, requestContextOf(context), check);
  if (!updated.ok) throw rateLimited(updated.retryAfterMs);
  return { updatedCount: updated.count };
}

/** @throws ServiceError if browsers would drop the access cookie of the session after the update */
function requireFitting(deps: SessionAdminServiceDeps, session: Session, change: SessionChange): void {
  requireAccessCookie(deps, { ...session, version: (session.version ?? 0) + 1, ...change });
}

/** The fields that an update may replace, by their names in an update mask. */
const UPDATABLE = ["claims", "audiences"];

type Fields = Pick<UpdateSessionRequest, "claims" | "audiences" | "accessTokens"> & {
  readonly updateMask?: FieldMask | undefined;
};

/** Returns what a request replaces: the fields of its mask, or without one those that are set (AIP-134). @throws ServiceError */
function changeOf({ claims, audiences, updateMask, accessTokens }: Fields): SessionChange {
  const masked = updateMask?.paths ?? [];
  for (const path of masked) {
    if (!UPDATABLE.includes(path)) throw invalidRequest("update_mask", "has a path other than claims and audiences");
  }
  const set = [...(claims === undefined ? [] : ["claims"]), ...(audiences.length === 0 ? [] : ["audiences"])];
  const paths = masked.length > 0 ? masked : set;
  if (paths.length === 0) throw invalidRequest("update_mask", "is required if neither claims nor audiences are set");
  const replacesAudiences = paths.includes("audiences");
  if (replacesAudiences && audiences.length === 0) throw invalidRequest("audiences", "must be at least one");
  return {
    ...(paths.includes("claims") && { claims: claimsOf(claims) }),
    ...(replacesAudiences && { audience: audienceOf("", audiences, "") }),
    outdatesTokens: isRefresh(accessTokens),
  };
}

/** Returns the version that an etag stands for. An etag that no session has is outdated in any case. */
function versionOf(etag: string): Pick<SessionChange, "ifVersion"> {
  if (etag === "") return {};
  if (!/^(?:0|[1-9]\d{0,9})$/.test(etag)) throw invalidRequest("etag", "is not an etag of a session");
  return { ifVersion: Number(etag) };
}
