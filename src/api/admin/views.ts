/** Converts sessions and revocations to messages of the admin API. */
import type { JsonObject } from "@bufbuild/protobuf";
import { DeviceBindingPolicy } from "../../../gen/auth/admin/v1/session_admin_pb.ts";
import { type DeviceBinding, thumbprintOf } from "../../session/device-key.ts";
import { type Authentication, audiencesOf, type Revocation, type Session } from "../../session/model.ts";
import { timesOf } from "../messages.ts";
import { feedTime, shownTime, wallTime } from "../times.ts";
import { REVOCATION_REASONS, TRANSPORTS } from "./enums.ts";

/** @param shiftMs by how many ms the wall clock is ahead of the time of the session's store */
export function sessionMessage(session: Session, shiftMs: number) {
  return {
    sessionId: session.sid,
    subject: session.subject,
    clientId: session.clientId,
    audience: audiencesOf(session.audience)[0],
    audiences: [...audiencesOf(session.audience)],
    claims: JSON.parse(session.claims) as JsonObject,
    client: session.client,
    ...timesOf(session, shiftMs),
    ...(session.authentication && authenticationFields(session.authentication)),
    ...(session.device && { deviceBinding: deviceFields(session.device, shiftMs) }),
    ...(session.transport && { transport: TRANSPORTS[session.transport] }),
    ...(session.deviceRequired && { deviceBindingPolicy: DeviceBindingPolicy.REQUIRED }),
  };
}

function deviceFields(device: DeviceBinding, shiftMs: number) {
  return {
    algorithm: device.key.algorithm,
    thumbprint: thumbprintOf(device),
    bound: device.state === "bound",
    sinceTime: shownTime(device.since, shiftMs),
  };
}

function authenticationFields({ time, methods, contextClass }: Authentication) {
  return { ...(time > 0 && { authTime: wallTime(time) }), amr: [...methods], acr: contextClass };
}

export function revocationMessage(revocation: Revocation) {
  return {
    sessionId: revocation.sid,
    revokeTime: feedTime(revocation.revokedAt),
    expireTime: feedTime(revocation.expiresAt),
    reason: revocation.reason,
    revocationReason: REVOCATION_REASONS[revocation.reason],
  };
}
