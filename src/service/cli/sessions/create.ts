import { create, type JsonObject, type JsonValue, toJson } from "@bufbuild/protobuf";
import { type Duration, durationFromMs, type Timestamp, timestampFromMs, timestampNow } from "@bufbuild/protobuf/wkt";
import {
  type CreateSessionRequest,
  CreateSessionRequestSchema,
  CreateSessionResponseSchema,
  DeviceBindingPolicy,
  LimitAction,
  LimitScope,
} from "../../../../gen/auth/admin/v1/session_admin_pb.ts";
import { DAY_MS, date, duration } from "../../config/values.ts";
import { openAdminApi } from "../admin-api/client.ts";
import type { CallOptions } from "../admin-api/options.ts";
import { type Context, usageError } from "../context.ts";
import { fields } from "../output/text.ts";
import { kindNamed, sessionFields } from "./view.ts";

type Text = "clientId" | "userAgent" | "ipAddress" | "displayName" | "acr" | "replaces" | ActorText | Time;
type ActorText = "actor" | "actorReason" | "actorSession";
type Time = "idleTimeout" | "absoluteLifetime" | "authTime";

type SessionOptions = CallOptions & { readonly [text in Text]?: string } & {
  readonly subject: string;
  readonly claim?: readonly string[];
  readonly audience?: string[];
  readonly amr?: string[];
  readonly requireDeviceBinding?: boolean;
  readonly persistent?: boolean;
  readonly kind?: string;
  readonly maxSessions?: number;
  readonly limitScope?: string;
  readonly whenExceeded?: string;
  readonly endWithActor?: boolean;
};

export async function createSession(context: Context, options: SessionOptions): Promise<void> {
  const request = requestOf(options);
  const api = openAdminApi(context.env, options);
  const created = await api.client.createSession(request);
  if (options.json) return void context.print(JSON.stringify(toJson(CreateSessionResponseSchema, created)));
  const { session, accessToken, refreshToken, setCookies } = created;
  const tokens: [string, string][] = [
    ["access token", accessToken],
    ["refresh token", refreshToken],
    ...setCookies.map((cookie): [string, string] => ["set-cookie", cookie]),
  ];
  context.print([...(session ? [sessionFields(session, Date.now()), ""] : []), fields(tokens)].join("\n"));
}

/** The fields that an option sets: one that has none is named here. */
type Offered = Exclude<keyof CreateSessionRequest, `$${string}` | "audience" | "transport" | "dpopJkt" | "upstream">;

function requestOf(options: SessionOptions): CreateSessionRequest {
  const { subject, clientId = "", audience = [], amr = [], acr = "", replaces = "" } = options;
  const { userAgent = "", ipAddress = "", displayName = "" } = options;
  return create(CreateSessionRequestSchema, {
    subject,
    clientId,
    audiences: audience,
    client: { userAgent, ipAddress, displayName, kind: kindNamed(options.kind) },
    amr,
    acr,
    replacesSessionId: replaces,
    deviceBindingPolicy: DeviceBindingPolicy[options.requireDeviceBinding ? "REQUIRED" : "UNSPECIFIED"],
    limit: limitOf(options),
    persistent: options.persistent === false ? false : undefined,
    actor: actorOf(options),
    claims: options.claim && parseClaims(options.claim),
    idleTimeout: lifeOf("--idle-timeout", options.idleTimeout),
    absoluteLifetime: lifeOf("--absolute-lifetime", options.absoluteLifetime),
    authTime: options.authTime ? timeOf(options.authTime) : undefined,
  } satisfies Record<Offered, unknown>);
}

function limitOf({ maxSessions, limitScope, whenExceeded }: SessionOptions) {
  if (maxSessions !== undefined) {
    return {
      maxSessions,
      scope: enumValue(LimitScope, limitScope),
      whenExceeded: enumValue(LimitAction, whenExceeded),
    };
  }
  if ((limitScope ?? whenExceeded) !== undefined)
    throw usageError("--limit-scope and --when-exceeded need --max-sessions");
  return undefined;
}

/** Returns the value of an enum that an option names in lower case. */
function enumValue<Name extends string, Value>(
  values: { readonly [name in Name]: Value },
  name = "unspecified",
): Value {
  return values[name.toUpperCase() as Name];
}

function actorOf({ actor: subject, actorReason, actorSession, endWithActor }: SessionOptions) {
  if (subject === undefined) {
    if (actorReason ?? actorSession ?? endWithActor) throw usageError("--actor is needed with the options about it");
    return undefined;
  }
  const [reason, sessionId] = [actorReason ?? "", actorSession ?? ""];
  return { subject, reason, sessionId, endWithSession: endWithActor === true };
}

export function parseClaims(claims: readonly string[]): JsonObject {
  return Object.fromEntries(
    claims.map((claim) => {
      const [, name, text = ""] = /^([^=]+)=(.*)$/s.exec(claim) ?? [];
      if (name === undefined) throw usageError("--claim must be name=value");
      return [name, jsonOrText(text)];
    }),
  );
}

function jsonOrText(text: string): JsonValue {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

function lifeOf(option: string, text: string | undefined): Duration | undefined {
  if (!text) return undefined;
  const parsed = duration(1000, 3660 * DAY_MS)(text);
  if (!parsed.ok) throw usageError(`${option} ${parsed.reason}`);
  return durationFromMs(parsed.value);
}

function timeOf(text: string): Timestamp {
  if (text === "now") return timestampNow();
  const parsed = date(text);
  if (!parsed.ok) throw usageError("--auth-time must be now, or a time such as 2027-01-31T12:00:00Z");
  return timestampFromMs(parsed.value);
}
