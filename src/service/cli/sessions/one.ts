import { Code } from "@connectrpc/connect";
import { type Session, SessionEventType } from "../../../../gen/auth/admin/v1/session_admin_pb.ts";
import { type AdminApi, openAdminApi } from "../admin-api/client.ts";
import type { CallFailure } from "../admin-api/failure.ts";
import type { CallOptions } from "../admin-api/options.ts";
import { CommandError, type Context } from "../context.ts";
import { printable } from "../output/text.ts";
import { isoText } from "../output/times.ts";
import { eventsOf, reasonOf } from "./list.ts";
import { sessionAsJson, sessionFields } from "./view.ts";

export async function showSession(context: Context, sessionId: string, options: CallOptions): Promise<void> {
  const api = openAdminApi(context.env, options);
  const found = await liveOnly(api.client.getSession({ sessionId }));
  if (found?.session === undefined) throw notLive(sessionId, await whyNotLive(api, sessionId));
  print(context, options, found.session);
}

export async function unbindSession(context: Context, sessionId: string, options: CallOptions): Promise<void> {
  const api = openAdminApi(context.env, options);
  const unbound = await liveOnly(api.client.unbindDevice({ sessionId }));
  if (unbound === undefined) throw notLive(sessionId, "");
  if (unbound.session !== undefined) print(context, options, unbound.session);
}

/** Returns undefined if the session of the call is not live. */
export const liveOnly = <T>(call: Promise<T>) =>
  call.catch((failure: CallFailure) => {
    if (failure.code !== Code.NotFound) throw failure;
  });

export const notLive = (sessionId: string, why: string) =>
  new CommandError(`there is no live session ${printable(sessionId)}${why}`);

async function whyNotLive(api: AdminApi, sessionId: string): Promise<string> {
  const events = await eventsOf(api, { sessionId }, 100);
  const end = events.find(({ type }) => type === SessionEventType.ENDED);
  return end === undefined ? "" : `: it ended at ${isoText(end.eventTime)} (${reasonOf(end)})`;
}

export function print(context: Context, { json }: CallOptions, session: Session): void {
  context.print(json ? JSON.stringify(sessionAsJson(session)) : sessionFields(session, Date.now()));
}
