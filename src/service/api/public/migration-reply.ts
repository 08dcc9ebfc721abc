/** Reads the reply of the application about an old session: the JSON form of `CreateSessionRequest`, and `old_session_id` beside it. */
import { create, fromJson, type JsonObject } from "@bufbuild/protobuf";
import {
  ClientSchema,
  type CreateSessionRequest,
  CreateSessionRequestSchema,
  Transport,
} from "../../../../gen/auth/admin/v1/session_admin_pb.ts";
import { invalidFields, invalidRequest, ServiceError } from "../../session/errors.ts";
import type { ApplicationReply } from "../../session/migration/application.ts";
import type { OldSession } from "../../session/migration/migrate.ts";
import type { ClientData } from "../../session/model.ts";
import { type AccessCookieDeps, requireAccessCookie } from "../admin/access-cookie.ts";
import type { SessionAdminServiceDeps } from "../admin/deps.ts";
import { type WantedDeps, wantedSession } from "../admin/session-fields.ts";
import { limitFor } from "../admin/session-limit.ts";
import { jsonOptions } from "../connect-options.ts";
import { explainUnknownField } from "../errors/json-fault.ts";
import { prepareRules } from "../rules/violations.ts";

export type ReplyDeps = WantedDeps & AccessCookieDeps & Pick<SessionAdminServiceDeps, "limitPolicies">;

type Read = Pick<OldSession, "wanted" | "limit"> & { readonly ok: true; readonly id: string | undefined };
type Failed = Extract<ApplicationReply, { readonly reason: "failed" }>;

const MAX_USER_AGENT = 512;
const MAX_ID = 1_024;
const violationsOf = prepareRules(CreateSessionRequestSchema, 1);

/** @param client what the request shows of the device, for a reply that says nothing of it */
export function readReply(deps: ReplyDeps, body: string, client: ClientData): Read | Failed {
  try {
    const { id, request } = parse(body);
    request.client ??= create(ClientSchema, { ...client, userAgent: shortened(client.userAgent) });
    const violations = violationsOf(request);
    if (violations.length > 0) throw invalidFields(violations);
    if (request.replacesSessionId !== "") throw invalidRequest("replaces_session_id", "is for logins");
    if (request.actor !== undefined) throw invalidRequest("actor", "is for logins");
    if (request.transport === Transport.TOKEN) throw invalidRequest("transport", "is for cookies here");
    const wanted = wantedSession(deps, request);
    requireAccessCookie(deps, wanted);
    return { ok: true, wanted, limit: limitFor(request.limit, deps.limitPolicies(), wanted), id };
  } catch (error) {
    if (!(error instanceof ServiceError)) throw error;
    return { ok: false, reason: "failed", fault: error.message };
  }
}

/** @throws ServiceError whose message contains no value of the reply */
function parse(body: string): { readonly id: string | undefined; readonly request: CreateSessionRequest } {
  let json: unknown;
  try {
    json = JSON.parse(body);
  } catch {}
  if (typeof json !== "object" || json === null) throw invalidRequest("", "the reply is not a JSON object");
  const { old_session_id: name = undefined, oldSessionId: id = name, ...fields } = json as JsonObject;
  if (id !== undefined && (typeof id !== "string" || id === "" || id.length > MAX_ID)) {
    throw invalidRequest("old_session_id", `is not a text of 1 to ${MAX_ID} characters`);
  }
  try {
    const options = { ...jsonOptions, ignoreUnknownFields: false };
    return { id, request: fromJson(CreateSessionRequestSchema, fields, options) };
  } catch (error) {
    const known = error instanceof Error ? explainUnknownField(error.message) : undefined;
    throw invalidRequest("", known ?? "the reply is no CreateSessionRequest");
  }
}

/** Returns a text that fits into the field, without characters that it may not contain. */
function shortened(text: string): string {
  const clean = text.replace(/\p{Cc}/gu, "");
  return Buffer.byteLength(clean) <= MAX_USER_AGENT ? clean : clean.slice(0, MAX_USER_AGENT / 4);
}
