import { openAdminApi } from "../admin-api/client.ts";
import type { CallOptions } from "../admin-api/options.ts";
import type { Context } from "../context.ts";
import { usageError } from "../exit.ts";
import { readLines } from "../input.ts";
import { table } from "../output/table.ts";
import { callForAll, reportRest, restAsJson, type WorkOptions } from "./leftovers.ts";

export async function endSessions(
  context: Context,
  operands: readonly string[],
  options: CallOptions & WorkOptions,
): Promise<void> {
  const isList = operands.includes("-");
  if (isList && operands.length > 1) throw usageError("- takes the place of all session ids");
  if (isList && options.tokenFile === "-")
    throw usageError("standard input has the ids: give the token by another way");
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
