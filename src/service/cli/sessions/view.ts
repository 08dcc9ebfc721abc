import { toJson } from "@bufbuild/protobuf";
import type { Timestamp } from "@bufbuild/protobuf/wkt";
import {
  ClientKind,
  ClientKindSchema,
  DeviceBindingPolicy,
  type Session,
  SessionSchema,
} from "../../../../gen/auth/admin/v1/session_admin_pb.ts";
import { fields, table } from "../output/text.ts";
import { moment, relative, shownAt } from "../output/times.ts";

/** The most characters of a device's description in a table. */
const MAX_DEVICE = 40;

export const sessionAsJson = (session: Session) => toJson(SessionSchema, session);

function deviceOf({ client }: Session): string {
  const name = client?.displayName || client?.userAgent || "";
  return name.length > MAX_DEVICE ? `${name.slice(0, MAX_DEVICE - 1)}…` : name;
}

export const kindNamed = (name = "unspecified"): ClientKind =>
  ClientKind[name.toUpperCase() as keyof typeof ClientKind];

const kindOf = ({ client }: Session): string =>
  client?.kind ? (ClientKindSchema.value[client.kind]?.localName ?? "").toLowerCase() : "";

export function sessionTable(sessions: readonly Session[], nowMs: number): string {
  const age = (time: Timestamp | undefined) => shownAt(time, (ms) => relative(ms, nowMs));
  const rows = sessions.map((session) => [
    session.sessionId,
    session.actor ? `${session.subject}, by ${session.actor.subject}` : session.subject,
    session.clientId,
    kindOf(session),
    age(session.createTime),
    age(session.lastRefreshTime),
    age(session.idleExpireTime),
    session.deviceBinding?.bound ? "yes" : "",
    deviceOf(session),
  ]);
  return table([["session", "subject", "client", "kind", "created", "refreshed", "ends", "bound", "device"], ...rows]);
}

function deviceKeyOf(
  { deviceBinding: binding, deviceBindingPolicy: policy }: Session,
  when: (time: Timestamp | undefined) => string,
): string {
  if (binding === undefined) return policy === DeviceBindingPolicy.REQUIRED ? "required, and none yet" : "";
  const state = binding.bound ? "bound since" : "registered, not used yet, since";
  return `${binding.algorithm} ${binding.thumbprint}, ${state} ${when(binding.sinceTime)}`;
}

function actorOf({ actor }: Session): string {
  if (actor === undefined) return "";
  const reason = actor.reason === "" ? "" : `: ${actor.reason}`;
  return `${actor.subject}${reason}${actor.endWithSession ? `, until session ${actor.sessionId} ends` : ""}`;
}

type Field = Exclude<keyof Session, `$${string}`>;
type Line = readonly [name: string, value: string];

/** Returns the lines of the fields that have others than their own name and value. */
function linesOf(session: Session, nowMs: number): { readonly [field in Field]?: readonly Line[] } {
  const when = (time: Timestamp | undefined) => shownAt(time, (ms) => moment(ms, nowMs));
  const { client, lastSeenClient } = session;
  return {
    sessionId: [["session", session.sessionId]],
    clientId: [["client", session.clientId]],
    audience: [],
    client: [
      ["kind", kindOf(session)],
      ["device", client?.displayName ?? ""],
      ["user agent", client?.userAgent ?? ""],
      ["address", client?.ipAddress ?? ""],
    ],
    createTime: [["created", when(session.createTime)]],
    lastRefreshTime: [["refreshed", when(session.lastRefreshTime)]],
    idleExpireTime: [["ends unless refreshed", when(session.idleExpireTime)]],
    absoluteExpireTime: [["ends at the latest", when(session.absoluteExpireTime)]],
    audiences: [["audience", session.audiences.join(", ")]],
    authTime: [["authenticated", when(session.authTime)]],
    amr: [["methods", session.amr.join(", ")]],
    acr: [["class", session.acr]],
    deviceBinding: [["device key", deviceKeyOf(session, when)]],
    deviceBindingPolicy: [],
    lastSeenClient: [
      ["last user agent", lastSeenClient?.userAgent ?? ""],
      ["last address", lastSeenClient?.ipAddress ?? ""],
    ],
    actor: [["actor", actorOf(session)]],
  };
}

export function sessionFields(session: Session, nowMs: number): string {
  const lines = new Map<string, readonly Line[]>(Object.entries(linesOf(session, nowMs)));
  const values = new Map<string, unknown>(Object.entries(Object(sessionAsJson(session))));
  const textOf = (value: unknown = "") => (typeof value === "string" ? value : JSON.stringify(value));
  return fields(
    SessionSchema.fields.flatMap(
      ({ localName, name, jsonName }) =>
        lines.get(localName) ?? [[name.replaceAll("_", " "), textOf(values.get(jsonName))] as const],
    ),
  );
}
