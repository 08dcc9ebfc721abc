import type { Timestamp } from "@bufbuild/protobuf/wkt";
import { openAdminApi } from "../admin-api/client.ts";
import type { CallOptions } from "../admin-api/options.ts";
import type { Context } from "../context.ts";
import { readPages } from "./pages.ts";
import { sessionAsJson, sessionTable } from "./view.ts";

type ListOptions = CallOptions & {
  readonly subject?: string;
  readonly subjectPrefix?: string;
  readonly clientId?: string;
  readonly device?: string;
  readonly ipAddress?: string;
  readonly createdAfter?: Timestamp;
  readonly createdBefore?: Timestamp;
  readonly limit: number;
  readonly ids?: boolean;
};

export async function listSessions(context: Context, options: ListOptions): Promise<void> {
  const api = openAdminApi(context.env, options);
  const { subject = "", subjectPrefix = "", clientId = "", device = "", ipAddress = "" } = options;
  const { createdAfter, createdBefore } = options;
  const filter = { subject, subjectPrefix, clientId, device, ipAddress, createdAfter, createdBefore };
  const { entries: sessions, isWhole } = await readPages(options.limit, async (page) => {
    const found = await api.client.listSessions({ ...filter, ...page });
    return [found.sessions, found.nextPageToken];
  });
  if (options.ids) for (const { sessionId } of sessions) context.print(sessionId);
  else if (options.json) context.print(JSON.stringify({ sessions: sessions.map(sessionAsJson) }));
  else if (sessions.length > 0) context.print(sessionTable(sessions, Date.now()));
  else context.note("no live session");
  if (!isWhole) context.note(`there are more: these are the newest ${sessions.length} (--limit)`);
}
