import { create, toJson } from "@bufbuild/protobuf";
import {
  type ExportSubjectResponse,
  ExportSubjectResponseSchema,
} from "../../../../gen/auth/admin/v1/session_admin_pb.ts";
import { openAdminApi } from "../admin-api/client.ts";
import type { CallOptions } from "../admin-api/options.ts";
import { CommandError, type Context, usageError } from "../context.ts";
import { confirm } from "../input.ts";
import { countOf } from "../output/text.ts";
import { callForAll, reportRest, restAsJson, subjectsOf, type WorkOptions } from "../sessions/leftovers.ts";

/** Prints all pages as one document. */
export async function exportSubject(
  context: Context,
  options: CallOptions & { readonly subject: string },
): Promise<void> {
  const { subject, json } = options;
  const api = openAdminApi(context.env, options);
  const all: ExportSubjectResponse = create(ExportSubjectResponseSchema);
  let pageToken = "";
  do {
    const page = await api.client.exportSubject({ subject, pageToken });
    all.sessions.push(...page.sessions);
    all.events.push(...page.events);
    all.signals.push(...page.signals);
    all.subscriptionIds.push(...page.subscriptionIds);
    pageToken = page.nextPageToken;
  } while (pageToken !== "");
  context.print(JSON.stringify(toJson(ExportSubjectResponseSchema, all), undefined, json ? undefined : 2));
}

type ForgetOptions = CallOptions &
  WorkOptions & { readonly subject?: string; readonly subjectsFrom?: string; readonly yes?: boolean };

export async function forgetSubjects(context: Context, options: ForgetOptions): Promise<void> {
  const { subject, subjectsFrom, yes, json } = options;
  if ((subject === undefined) === (subjectsFrom === undefined)) {
    throw usageError("give exactly one of --subject and --subjects-from");
  }
  if (subjectsFrom === "-" && !yes) throw usageError("standard input has the subjects: confirm with --yes");
  const items = subjectsOf(options);
  const api = openAdminApi(context.env, options);
  const users = countOf(items.all.length, "user");
  if (!yes && !(await confirm(`Remove what is stored of ${users} at ${api.url}? It cannot be undone.`))) {
    throw new CommandError(`nothing was removed: confirm with --yes that ${users} at ${api.url} are to be forgotten`);
  }
  const call = (each: string, signal: AbortSignal) => api.client.forgetSubject({ subject: each }, { signal });
  const outcome = await callForAll(context, items, options, call, "forgetting");
  const { done, left } = outcome;
  const sum = (of: "revokedCount" | "eventCount" | "signalCount") =>
    done.reduce((total, { result }) => total + result[of], 0);
  const subscriptionIds = [...new Set(done.flatMap(({ result }) => result.subscriptionIds))];
  const counts = { endedCount: sum("revokedCount"), eventCount: sum("eventCount"), signalCount: sum("signalCount") };
  const summary = `forgot ${countOf(done.length, "user")}: ended ${countOf(counts.endedCount, "session")}, removed ${countOf(counts.eventCount, "event")}`;
  if (json) {
    const rest = restAsJson(outcome, "subject");
    context.print(JSON.stringify({ subjects: items.all.length, ...counts, subscriptionIds, ...rest }));
  } else if (left.length === 0 && (done.length > 0 || items.all.length === 0)) context.print(summary);
  if (counts.signalCount > 0) {
    context.note(
      `${countOf(counts.signalCount, "signal")} could not be delivered in time, and are sent without the user`,
    );
  }
  if (subscriptionIds.length > 0) {
    context.note(`subscriptions still name a user in their filter: ${subscriptionIds.join(", ")}`);
  }
  reportRest(context, items, options, outcome, summary);
}
