/** The fields of a session in messages of the admin API: taken from a request, and shown. */
import type { JsonObject } from "@bufbuild/protobuf";
import {
  type CreateSessionRequest,
  DeviceBindingPolicy,
  type Session as SessionMessage,
  Transport,
  type Upstream as UpstreamMessage,
} from "../../../../gen/auth/admin/v1/session_admin_pb.ts";
import { type DeviceBinding, thumbprintOf } from "../../session/devices/key.ts";
import { invalidRequest } from "../../session/errors.ts";
import {
  type Actor,
  audiencesOf,
  type NewSession,
  presentFields,
  type Session,
  type Upstream,
} from "../../session/model.ts";
import {
  audienceOf,
  authenticationOf,
  claimsOf,
  durationOf,
  nameOf,
  numberOf,
  sessionIdOf,
  timesOf,
} from "../messages.ts";
import { shownTime, wallTime } from "../times.ts";
import type { SessionAdminServiceDeps } from "./deps.ts";
import { clientMessage, kindOf } from "./session-limit.ts";

export type WantedDeps = Pick<
  SessionAdminServiceDeps,
  "audience" | "sessionIdleTtlMs" | "sessionAbsoluteTtlMs" | "actorSessionMaxMs" | "clock" | "device" | "oauthEndpoints"
>;

type Wanted = Omit<NewSession, "sid">;

/** Returns the session that a request describes. @throws ServiceError if it cannot be created */
export function wantedSession(deps: WantedDeps, request: CreateSessionRequest): Wanted {
  const audience = audienceOf(request.audience, request.audiences, deps.audience);
  const actor = actorOf(request);
  const mostMs = actor === undefined ? Number.POSITIVE_INFINITY : deps.actorSessionMaxMs;
  const maxAbsoluteMs = Math.min(deps.sessionAbsoluteTtlMs, mostMs);
  const deviceRequired = request.deviceBindingPolicy === DeviceBindingPolicy.REQUIRED;
  if (deviceRequired && !deps.device.offers) {
    throw invalidRequest("device_binding_policy", "REQUIRED needs DEVICE_BINDING=on");
  }
  const transport = nameOf(Transport, request.transport);
  if (transport === "token") checkTokenTransport(deps, request, deviceRequired);
  const { dpopJkt } = request;
  if (dpopJkt !== "") checkKey(deps, dpopJkt, deviceRequired);
  return presentFields<Wanted>({
    subject: request.subject,
    clientId: request.clientId || audiencesOf(audience)[0],
    audience,
    claims: claimsOf(request.claims),
    client: {
      userAgent: request.client?.userAgent ?? "",
      ipAddress: request.client?.ipAddress ?? "",
      displayName: request.client?.displayName ?? "",
    },
    idleTimeoutMs: durationOf("idle_timeout", request.idleTimeout, Math.min(deps.sessionIdleTtlMs, mostMs)),
    absoluteLifetimeMs: durationOf("absolute_lifetime", request.absoluteLifetime, maxAbsoluteMs),
    authentication: authenticationOf(request, deps.clock()),
    deviceRequired: deviceRequired || undefined,
    transport,
    dpopJkt: dpopJkt || undefined,
    kind: kindOf(request.client?.kind),
    persistent: request.persistent === false ? false : undefined,
    actor,
    upstream: request.upstream && upstreamOf(request.upstream),
  });
}

function upstreamOf({ issuer, sessionId, subject }: UpstreamMessage): Upstream {
  if (sessionId === "" && subject === "") throw invalidRequest("upstream", "needs session_id or subject");
  return { issuer, ...(sessionId !== "" && { sessionId }), ...(subject !== "" && { subject }) };
}

/** Returns who is to use the session in place of its subject; undefined if nobody is. */
function actorOf({ actor, subject, limit, authTime, amr, acr }: CreateSessionRequest): Actor | undefined {
  if (actor === undefined) return undefined;
  if (actor.subject === subject) throw invalidRequest("actor.subject", "is the subject of the session");
  if (authTime !== undefined || amr.length > 0 || acr !== "") {
    throw invalidRequest("actor", "goes with no auth_time, amr or acr: the subject has not authenticated");
  }
  if (limit !== undefined) throw invalidRequest("limit", "goes with no actor: the session counts among no others");
  if (actor.endWithSession && actor.sessionId === "") throw invalidRequest("actor.session_id", "is required");
  return {
    subject: actor.subject,
    ...(actor.reason !== "" && { reason: actor.reason }),
    ...(actor.sessionId !== "" && { sessionId: sessionIdOf("actor.session_id", actor.sessionId) }),
    ...(actor.endWithSession && { endsWithSession: true as const }),
  };
}

/** Checks a session that only the token endpoint can refresh. Such a session cannot require device binding, which needs cookies. */
function checkTokenTransport(
  { oauthEndpoints }: WantedDeps,
  { persistent }: CreateSessionRequest,
  deviceRequired: boolean,
): void {
  if (!oauthEndpoints) throw invalidRequest("transport", "TOKEN needs OAUTH_ENDPOINTS=on");
  if (deviceRequired) throw invalidRequest("transport", "TOKEN goes with no device_binding_policy");
  if (persistent === false)
    throw invalidRequest("persistent", "is for cookies, which the transport TOKEN does not have");
}

/** Matches a SHA-256 key thumbprint in base64url. The last character has two bits more than the hash, which must be zero. */
const THUMBPRINT = /^[A-Za-z0-9_-]{42}[AEIMQUYcgkosw048]$/;

/** Checks the key thumbprint of a new session. @throws ServiceError if no client could prove possession of such a key */
function checkKey({ oauthEndpoints }: WantedDeps, thumbprint: string, deviceRequired: boolean): void {
  if (!THUMBPRINT.test(thumbprint)) throw invalidRequest("dpop_jkt", "is not a SHA-256 thumbprint in base64url");
  if (!oauthEndpoints) throw invalidRequest("dpop_jkt", "needs OAUTH_ENDPOINTS=on");
  if (deviceRequired) throw invalidRequest("dpop_jkt", "goes with no device_binding_policy");
}

/** @param shiftMs by how many ms the wall clock is ahead of the time of the session's store */
export function sessionMessage(session: Session, shiftMs: number) {
  const { authentication, device, transport } = session;
  return {
    sessionId: session.sid,
    subject: session.subject,
    clientId: session.clientId,
    audience: audiencesOf(session.audience)[0],
    audiences: [...audiencesOf(session.audience)],
    claims: JSON.parse(session.claims) as JsonObject,
    client: clientMessage(session),
    ...timesOf(session, shiftMs),
    authTime: authentication && authentication.time > 0 ? wallTime(authentication.time) : undefined,
    amr: [...(authentication?.methods ?? [])],
    acr: authentication?.contextClass ?? "",
    deviceBinding: device && deviceFields(device, shiftMs),
    deviceBindingPolicy: DeviceBindingPolicy[session.deviceRequired ? "REQUIRED" : "UNSPECIFIED"],
    transport: numberOf(Transport, transport ?? "unspecified"),
    persistent: session.persistent,
    lastSeenClient: session.lastSeen,
    etag: String(session.version ?? 0),
    actor: session.actor && actorFields(session.actor),
    upstream: session.upstream,
  } satisfies Record<Exclude<keyof SessionMessage, `$${string}`>, unknown>;
}

function actorFields({ subject, reason = "", sessionId, endsWithSession }: Actor) {
  return { subject, reason, sessionId: sessionId ?? "", endWithSession: endsWithSession === true };
}

function deviceFields(device: DeviceBinding, shiftMs: number) {
  return {
    algorithm: device.key.algorithm,
    thumbprint: thumbprintOf(device),
    bound: device.state === "bound",
    sinceTime: shownTime(device.since, shiftMs),
  };
}
