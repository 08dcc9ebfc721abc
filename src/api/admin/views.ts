/** Sessions and revocations as messages of the admin API. */
import type { JsonObject } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { DeviceBindingPolicy } from "../../../gen/auth/admin/v1/session_admin_pb.ts";
import type { DeviceBinding } from "../../session/device-key.ts";
import { thumbprintOf } from "../../session/device-tools.ts";
import { type Authentication, audiencesOf, type Revocation, type Session } from "../../session/model.ts";
import { timesOf } from "../messages.ts";
import { REVOCATION_REASONS } from "./enums.ts";

export function sessionMessage(session: Session) {
  return {
    sessionId: session.sid,
    subject: session.subject,
    clientId: session.clientId,
    audience: audiencesOf(session.audience)[0],
    audiences: [...audiencesOf(session.audience)],
    claims: JSON.parse(session.claims) as JsonObject,
    client: session.client,
    ...timesOf(session),
    ...(session.authentication && authenticationFields(session.authentication)),
    ...(session.device && { deviceBinding: deviceFields(session.device) }),
    ...(session.deviceRequired && { deviceBindingPolicy: DeviceBindingPolicy.REQUIRED }),
  };
}

function deviceFields(device: DeviceBinding) {
  return {
    algorithm: device.key.algorithm,
    thumbprint: thumbprintOf(device),
    bound: device.state === "bound",
    sinceTime: timestampFromMs(device.since),
  };
}

function authenticationFields({ time, methods, contextClass }: Authentication) {
  return { ...(time > 0 && { authTime: timestampFromMs(time) }), amr: [...methods], acr: contextClass };
}

export function revocationMessage(revocation: Revocation) {
  return {
    sessionId: revocation.sid,
    revokeTime: timestampFromMs(revocation.revokedAt),
    expireTime: timestampFromMs(revocation.expiresAt),
    reason: revocation.reason,
    revocationReason: REVOCATION_REASONS[revocation.reason],
  };
}
