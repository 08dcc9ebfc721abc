import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import type { Session } from "../../../gen/auth/admin/v1/session_admin_pb.ts";
import { type AdminApi, openAdminApi } from "../admin-api/client.ts";
import type { ConnectionOptions } from "../admin-api/options.ts";
import type { Context } from "../context.ts";
import { sessionAsJson, sessionTable } from "./view.ts";

type ListOptions = ConnectionOptions & {
  readonly subject?: string;
  readonly subjectPrefix?: string;
  readonly clientId?: string;
  readonly device?: string;
  readonly ipAddress?: string;
  readonly createdAfter?: string;
  readonly createdBefore?: string;
  readonly limit: number;
  readonly ids?: boolean;
  readonly json?: boolean;
};

/** How many sessions the API returns at most in one page. */
const PAGE_SIZE = 100;

export async function listSessions(context: Context, options: ListOptions): Promise<void> {
  const api = openAdminApi(context.env, options);
  const { sessions, isWhole } = await firstSessions(api, options);
  if (options.ids) for (const { sessionId } of sessions) context.print(sessionId);
  else if (options.json) context.print(JSON.stringify({ sessions: sessions.map(sessionAsJson) }));
  else if (sessions.length > 0) context.print(sessionTable(sessions, Date.now()));
  else context.note("no live session");
  if (!isWhole) context.note(`there are more: these are the newest ${sessions.length} (--limit)`);
}

/** Reads the first sessions. @returns at most `limit` sessions, and whether these are all */
async function firstSessions(api: AdminApi, options: ListOptions) {
  const { subject = "", subjectPrefix = "", clientId = "", device = "", ipAddress = "", limit } = options;
  const texts = { subject, subjectPrefix, clientId, device, ipAddress };
  const filter = { ...texts, ...timeOf("createdAfter", options), ...timeOf("createdBefore", options) };
  const sessions: Session[] = [];
  let pageToken = "";
  do {
    const pageSize = Math.min(PAGE_SIZE, limit - sessions.length);
    const request = { ...filter, pageSize, pageToken };
    const page = await api.call((call) => api.client.listSessions(request, call));
    sessions.push(...page.sessions);
    pageToken = page.nextPageToken;
  } while (pageToken !== "" && sessions.length < limit);
  return { sessions, isWhole: pageToken === "" };
}

function timeOf(name: "createdAfter" | "createdBefore", options: ListOptions) {
  const { [name]: text } = options;
  return text === undefined ? {} : { [name]: timestampFromDate(new Date(text)) };
}
