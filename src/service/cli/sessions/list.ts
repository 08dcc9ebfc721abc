import { type DescEnum, toJson } from "@bufbuild/protobuf";
import type { Timestamp } from "@bufbuild/protobuf/wkt";
import {
  RevocationReasonSchema,
  type SessionEvent,
  SessionEventSchema,
  SessionEventTypeSchema,
} from "../../../../gen/auth/admin/v1/session_admin_pb.ts";
import { type AdminApi, openAdminApi } from "../admin-api/client.ts";
import type { CallOptions } from "../admin-api/options.ts";
import { type Context, usageError } from "../context.ts";
import { table } from "../output/text.ts";
import { isoText } from "../output/times.ts";
import { kindNamed, sessionAsJson, sessionTable } from "./view.ts";

type ListOptions = CallOptions & {
  readonly subject?: string;
  readonly subjectPrefix?: string;
  readonly clientId?: string;
  readonly kind?: string;
  readonly device?: string;
  readonly ipAddress?: string;
  readonly createdAfter?: Timestamp;
  readonly createdBefore?: Timestamp;
  readonly limit?: number;
  readonly ids?: boolean;
};

export async function listSessions(context: Context, options: ListOptions): Promise<void> {
  const api = openAdminApi(context.env, options);
  const { subject = "", subjectPrefix = "", clientId = "", device = "", ipAddress = "" } = options;
  const { createdAfter, createdBefore, ids } = options;
  // Ids are read by another command, which needs all of them.
  const limit = options.limit ?? (ids ? Number.POSITIVE_INFINITY : 100);
  const clientKind = kindNamed(options.kind);
  const filter = { subject, subjectPrefix, clientId, clientKind, device, ipAddress, createdAfter, createdBefore };
  const { entries: sessions, isWhole } = await readPages(limit, async (page) => {
    const found = await api.client.listSessions({ ...filter, ...page });
    return [found.sessions, found.nextPageToken];
  });
  if (ids) for (const { sessionId } of sessions) context.print(sessionId);
  else if (options.json) context.print(JSON.stringify({ sessions: sessions.map(sessionAsJson) }));
  else if (sessions.length > 0) context.print(sessionTable(sessions, Date.now()));
  else context.note("no live session");
  if (!isWhole) context.note(`there are more: these are the newest ${sessions.length} (--limit)`);
}

type Options = CallOptions & {
  readonly session?: string;
  readonly subject?: string;
  readonly limit: number;
};

export async function listEvents(context: Context, options: Options): Promise<void> {
  const { session = "", subject = "", limit } = options;
  if ((session === "") === (subject === "")) throw usageError("give exactly one of --session and --subject");
  const api = openAdminApi(context.env, options);
  const events = await eventsOf(api, { sessionId: session, subject }, limit);
  if (options.json) context.print(JSON.stringify({ events: events.map((event) => toJson(SessionEventSchema, event)) }));
  else if (events.length === 0) context.note("no event is kept");
  else context.print(table([["time", "event", "reason", "session", "address", "by", "actor"], ...events.map(rowOf)]));
}

export async function eventsOf(
  api: AdminApi,
  of: { readonly sessionId: string; readonly subject?: string },
  limit: number,
): Promise<readonly SessionEvent[]> {
  const { entries } = await readPages(limit, async (page) => {
    const { events, nextPageToken } = await api.client.listSessionEvents({ ...of, ...page });
    return [events, nextPageToken];
  });
  return entries;
}

/** Returns the name of an enum's value in lower case; an empty text for no value, and for one that this version does not know. */
const nameOf = ({ value }: DescEnum, number: number) =>
  number === 0 ? "" : (value[number]?.localName ?? "").toLowerCase();

export const reasonOf = ({ revocationReason }: SessionEvent) => nameOf(RevocationReasonSchema, revocationReason);

function rowOf(event: SessionEvent): readonly string[] {
  const type = nameOf(SessionEventTypeSchema, event.type);
  return [isoText(event.eventTime), type, reasonOf(event), event.sessionId, event.ipAddress, event.admin, event.actor];
}

/** How many entries the API returns at most in one page. */
const PAGE_SIZE = 100;

type Page = { readonly pageSize: number; readonly pageToken: string };

/** Reads a list page by page. @returns at most `limit` entries, and whether these are all */
async function readPages<Entry>(
  limit: number,
  read: (page: Page) => Promise<readonly [entries: readonly Entry[], nextPageToken: string]>,
): Promise<{ readonly entries: readonly Entry[]; readonly isWhole: boolean }> {
  const entries: Entry[] = [];
  let pageToken = "";
  do {
    const [page, next] = await read({ pageSize: Math.min(PAGE_SIZE, limit - entries.length), pageToken });
    entries.push(...page);
    pageToken = next;
  } while (pageToken !== "" && entries.length < limit);
  return { entries, isWhole: pageToken === "" };
}
