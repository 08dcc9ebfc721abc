import type { Session } from "../../../gen/auth/admin/v1/session_admin_pb.ts";
import { type AdminApi, callOptions, openAdminApi } from "../admin-api/client.ts";
import type { ConnectionOptions } from "../admin-api/options.ts";
import type { Context } from "../context.ts";
import { sessionAsJson, sessionTable } from "./view.ts";

export type ListOptions = ConnectionOptions & {
  readonly subject: string;
  readonly limit: number;
  readonly json?: boolean;
};

/** The most that the API returns at a time. */
const PAGE_SIZE = 100;

export async function listSessions(context: Context, options: ListOptions): Promise<void> {
  const api = openAdminApi(context.env, options);
  const { sessions, isWhole } = await firstSessions(api, options);
  if (options.json) context.print(JSON.stringify({ sessions: sessions.map(sessionAsJson) }));
  else if (sessions.length > 0) context.print(sessionTable(sessions, Date.now()));
  else context.note("no live session");
  if (!isWhole) context.note(`there are more: these are the newest ${sessions.length} (--limit)`);
}

/** @returns at most `limit` sessions, and whether these are all */
async function firstSessions(api: AdminApi, { subject, limit }: ListOptions) {
  const sessions: Session[] = [];
  let pageToken = "";
  do {
    const pageSize = Math.min(PAGE_SIZE, limit - sessions.length);
    const page = await api.client.listSessions({ subject, pageSize, pageToken }, callOptions()).catch((error) => {
      throw api.failure(error);
    });
    sessions.push(...page.sessions);
    pageToken = page.nextPageToken;
  } while (pageToken !== "" && sessions.length < limit);
  return { sessions, isWhole: pageToken === "" };
}
