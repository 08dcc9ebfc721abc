import { type DescEnum, toJson } from "@bufbuild/protobuf";
import {
  RevocationReasonSchema,
  type SessionEvent,
  SessionEventSchema,
  SessionEventTypeSchema,
} from "../../../gen/auth/admin/v1/session_admin_pb.ts";
import { type AdminApi, openAdminApi } from "../admin-api/client.ts";
import type { CallOptions } from "../admin-api/options.ts";
import type { Context } from "../context.ts";
import { usageError } from "../exit.ts";
import { table } from "../output/table.ts";
import { isoText } from "../output/times.ts";
import { readPages } from "./pages.ts";

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
  else context.print(table([["time", "event", "reason", "session", "address", "by"], ...events.map(rowOf)]));
}

/** Reads the newest events of a session or a subject. */
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

/**
 * Returns the name of an enum's value in lower case, as in the feed. Returns an empty text for no value, and for one that this version
 * does not know.
 */
const nameOf = ({ value }: DescEnum, number: number) =>
  number === 0 ? "" : (value[number]?.localName ?? "").toLowerCase();

export const reasonOf = ({ revocationReason }: SessionEvent) => nameOf(RevocationReasonSchema, revocationReason);

function rowOf(event: SessionEvent): readonly string[] {
  const type = nameOf(SessionEventTypeSchema, event.type);
  return [isoText(event.eventTime), type, reasonOf(event), event.sessionId, event.ipAddress, event.admin];
}
