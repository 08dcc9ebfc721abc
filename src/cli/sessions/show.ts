import { Code, ConnectError } from "@connectrpc/connect";
import { type Session, SessionEventType } from "../../../gen/auth/admin/v1/session_admin_pb.ts";
import { type AdminApi, callOptions, openAdminApi } from "../admin-api/client.ts";
import type { ConnectionOptions } from "../admin-api/options.ts";
import type { Context } from "../context.ts";
import { CommandError } from "../exit.ts";
import { printable } from "../output/printable.ts";
import { eventsOf, reasonOf, timeOf } from "./events.ts";
import { sessionAsJson, sessionFields } from "./view.ts";

export async function showSession(
  context: Context,
  sessionId: string,
  options: ConnectionOptions & { readonly json?: boolean },
): Promise<void> {
  const api = openAdminApi(context.env, options);
  const session = await liveSession(api, sessionId);
  if (session === undefined) throw new CommandError(await whyNotLive(api, sessionId));
  context.print(options.json ? JSON.stringify(sessionAsJson(session)) : sessionFields(session, Date.now()));
}

async function liveSession(api: AdminApi, sessionId: string): Promise<Session | undefined> {
  try {
    return (await api.client.getSession({ sessionId }, callOptions())).session;
  } catch (error) {
    if (ConnectError.from(error).code === Code.NotFound) return undefined;
    throw api.failure(error);
  }
}

/** Explains why a session is not live, from the events that are kept of it. */
async function whyNotLive(api: AdminApi, sessionId: string): Promise<string> {
  const events = await eventsOf(api, { sessionId, subject: "" }, 100);
  const end = events.find(({ type }) => type === SessionEventType.ENDED);
  const why = end === undefined ? "" : `: it ended at ${timeOf(end)} (${reasonOf(end)})`;
  return `there is no live session ${printable(sessionId)}${why}`;
}
