import { callOptions, openAdminApi } from "../admin-api/client.ts";
import type { ConnectionOptions } from "../admin-api/options.ts";
import type { Context } from "../context.ts";
import { usageError } from "../exit.ts";
import { readLines } from "../input.ts";
import { table } from "../output/table.ts";
import { forEach } from "./each.ts";

export async function endSessions(
  context: Context,
  operands: readonly string[],
  options: ConnectionOptions & { readonly json?: boolean },
): Promise<void> {
  if (operands.includes("-") && operands.length > 1) throw usageError("- takes the place of all session ids");
  if (operands.includes("-") && options.tokenFile === "-")
    throw usageError("standard input has the ids: give the token by another way");
  const ids = operands[0] === "-" ? readLines("-") : operands;
  const api = openAdminApi(context.env, options);
  const ended = await forEach("ending", ids, async (sessionId) => {
    const { revokedCount } = await api.client.revokeSession({ sessionId }, callOptions()).catch((error) => {
      throw api.failure(error);
    });
    return { sessionId, ended: revokedCount > 0 };
  });
  if (options.json) context.print(JSON.stringify({ sessions: ended }));
  else if (ended.length > 0) {
    const rows = ended.map(({ sessionId, ended: isEnded }) => [sessionId, isEnded ? "ended" : "was not live"]);
    context.print(table([["session", "result"], ...rows]));
  }
}
