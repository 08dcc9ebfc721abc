/** Converts limits on the sessions of a subject, and the refusal of a session by one. */
import { create, type MessageInitShape, toBinary } from "@bufbuild/protobuf";
import type { ConnectError } from "@connectrpc/connect";
import {
  ClientKind as KindEnum,
  LimitAction,
  LimitScope,
  SessionLimitExceededSchema,
  type SessionLimit as SessionLimitMessage,
} from "../../../../gen/auth/admin/v1/session_admin_pb.ts";
import type { SessionRefused } from "../../session/admin/create.ts";
import { type LimitPolicy, limitOf, MAX_SESSIONS, type SessionLimit } from "../../session/admin/limit.ts";
import { invalidRequest, ServiceError } from "../../session/errors.ts";
import type { ClientData, ClientKind, NewSession, Session } from "../../session/model.ts";
import { errorOf } from "../errors/connect-errors.ts";
import { nameOf, numberOf, timesOf } from "../messages.ts";

export const kindOf = (kind: KindEnum = KindEnum.UNSPECIFIED): ClientKind | undefined => nameOf(KindEnum, kind);

export const clientMessage = ({ client, kind }: { readonly client: ClientData; readonly kind?: ClientKind }) => ({
  ...client,
  ...(kind !== undefined && { kind: numberOf(KindEnum, kind) }),
});

/** Returns the limit for a new session: that of the request, or otherwise of the first policy that matches. */
export function limitFor(
  asked: SessionLimitMessage | undefined,
  policies: readonly LimitPolicy[],
  session: Pick<NewSession, "clientId" | "kind">,
): SessionLimit | undefined {
  if (asked === undefined) return limitOf(policies, session);
  const { maxSessions } = asked;
  if (maxSessions > MAX_SESSIONS) throw invalidRequest("limit.max_sessions", `must be at most ${MAX_SESSIONS}`);
  const scope = nameOf(LimitScope, asked.scope) ?? "subject";
  return { scope, maxSessions, whenExceeded: nameOf(LimitAction, asked.whenExceeded) ?? "end_least_recently_used" };
}

/** The most bytes of a refusal. It is sent in a header over gRPC, of which many clients accept 8 KiB. */
const MAX_DETAIL_BYTES = 4_096;
const MAX_USER_AGENT = 128;

/** @param shiftMs returns by how many ms the wall clock is ahead of the time of a session's store */
export function limitExceeded({ limit, live }: SessionRefused, shiftMs: (session: Session) => number): ConnectError {
  const { scope, maxSessions, whenExceeded } = limit;
  const limitFields = {
    scope: numberOf(LimitScope, scope),
    maxSessions,
    whenExceeded: numberOf(LimitAction, whenExceeded),
  };
  const listed = live.map((session) => {
    const { createTime, lastRefreshTime } = timesOf(session, shiftMs(session));
    const client = clientMessage(session);
    const userAgent = client.userAgent.slice(0, MAX_USER_AGENT).toWellFormed();
    return {
      sessionId: session.sid,
      clientId: session.clientId,
      client: { ...client, userAgent },
      createTime,
      lastRefreshTime,
    };
  });
  const detail = (count: number): MessageInitShape<typeof SessionLimitExceededSchema> => ({
    limit: limitFields,
    sessions: listed.slice(0, count),
  });
  const sizeOf = (count: number) =>
    toBinary(SessionLimitExceededSchema, create(SessionLimitExceededSchema, detail(count))).length;
  let count = listed.length;
  while (sizeOf(count) > MAX_DETAIL_BYTES) count--;
  const error = errorOf(new ServiceError("E429_SESSION_LIMIT"));
  error.details.push({ desc: SessionLimitExceededSchema, value: detail(count) });
  return error;
}
