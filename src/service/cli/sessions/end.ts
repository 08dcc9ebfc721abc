import type { Timestamp } from "@bufbuild/protobuf/wkt";
import { openAdminApi } from "../admin-api/client.ts";
import type { CallOptions } from "../admin-api/options.ts";
import { CommandError, type Context, usageError } from "../context.ts";
import { confirm, readLines, requireOneInput } from "../input.ts";
import { countOf, table } from "../output/text.ts";
import { isoText } from "../output/times.ts";
import { callForAll, reportRest, restAsJson, subjectsOf, type WorkOptions } from "./leftovers.ts";

export async function endSessions(
  context: Context,
  operands: readonly string[],
  options: CallOptions & WorkOptions,
): Promise<void> {
  const isList = operands.includes("-");
  if (isList && operands.length > 1) throw usageError("- takes the place of all session ids");
  requireOneInput("ids", isList ? "-" : undefined, options.tokenFile);
  if (options.left !== undefined && !isList) throw usageError("--left needs a list of ids: -");
  const items = { all: isList ? readLines("-") : operands, isList };
  const api = openAdminApi(context.env, options);
  const outcome = await callForAll(context, items, options, async (sessionId, signal) => {
    const { revokedCount } = await api.client.revokeSession({ sessionId }, { signal });
    return revokedCount > 0;
  });
  const { done, left } = outcome;
  if (options.json) {
    const sessions = done.map(({ item, result }) => ({ sessionId: item, ended: result }));
    context.print(JSON.stringify({ sessions, ...restAsJson(outcome, "sessionId") }));
  } else if (done.length > 0 && left.length === 0) {
    const rows = done.map(({ item, result }) => [item, result ? "ended" : "was not live"]);
    context.print(table([["session", "result"], ...rows]));
  }
  const ended = done.filter(({ result }) => result).length;
  reportRest(context, items, options, outcome, `ended ${ended} of ${items.all.length} sessions`);
}

type EndAllOptions = CallOptions &
  WorkOptions & {
    readonly subject?: string;
    readonly except?: string;
    readonly subjectsFrom?: string;
    readonly everyone?: boolean;
    readonly createdBefore?: Timestamp;
    readonly yes?: boolean;
  };

export async function endAllSessions(context: Context, options: EndAllOptions): Promise<void> {
  checkOptions(options);
  const items = subjectsOf(options);
  if (options.everyone) return endEverybodys(context, options);
  const { except = "", json } = options;
  const api = openAdminApi(context.env, options);
  const outcome = await callForAll(context, items, options, async (each, signal) => {
    const request = { subject: each, exceptSessionId: except };
    const response = await api.client.revokeSubjectSessions(request, { signal });
    return response.revokedCount;
  });
  const { done, left } = outcome;
  const endedCount = done.reduce((sum, { result }) => sum + result, 0);
  const summary = `ended ${countOf(endedCount, "session")} of ${countOf(done.length, "user")}`;
  if (json) {
    context.print(JSON.stringify({ subjects: items.all.length, endedCount, ...restAsJson(outcome, "subject") }));
  } else if (left.length === 0 && (done.length > 0 || items.all.length === 0)) context.print(summary);
  reportRest(context, items, options, outcome, summary);
}

function checkOptions(options: EndAllOptions): void {
  const { subject, subjectsFrom, everyone, except, createdBefore, yes } = options;
  if ([subject, subjectsFrom, everyone].filter((given) => given !== undefined).length !== 1) {
    throw usageError("give exactly one of --subject, --subjects-from and --everyone");
  }
  if (except !== undefined && subject === undefined) throw usageError("--except needs --subject");
  if (createdBefore !== undefined && !everyone) throw usageError("--created-before needs --everyone");
  if (yes && !everyone) throw usageError("--yes needs --everyone");
}

async function endEverybodys(context: Context, options: EndAllOptions): Promise<void> {
  const api = openAdminApi(context.env, options);
  const { createdBefore: issuedBefore } = options;
  const which = issuedBefore === undefined ? "every session" : `every session created before ${isoText(issuedBefore)}`;
  if (!options.yes && !(await confirm(`End ${which} at ${api.url}? Their users must log in again.`))) {
    throw new CommandError(`nothing was ended: confirm with --yes that ${which} at ${api.url} is to end`);
  }
  const items = { all: [which], isList: false };
  const outcome = await callForAll(context, items, options, (_, signal) =>
    api.client.revokeAllSessions({ issuedBefore }, { signal }),
  );
  reportRest(context, items, options, outcome, "");
  const revokedUntilTime = outcome.done[0]?.result.revokedUntilTime;
  const until = isoText(revokedUntilTime) || "now";
  if (options.json) context.print(JSON.stringify({ endedUntilTime: until }));
  else context.print(`ended every session that was created until ${until}`);
}
