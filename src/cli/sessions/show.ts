import { Code, ConnectError } from "@connectrpc/connect";
import { callOptions, openAdminApi } from "../admin-api/client.ts";
import type { ConnectionOptions } from "../admin-api/options.ts";
import type { Context } from "../context.ts";
import { CommandError } from "../exit.ts";
import { printable } from "../output/printable.ts";
import { sessionAsJson, sessionFields } from "./view.ts";

export async function showSession(
  context: Context,
  sessionId: string,
  options: ConnectionOptions & { readonly json?: boolean },
): Promise<void> {
  const api = openAdminApi(context.env, options);
  const { session } = await api.client.getSession({ sessionId }, callOptions()).catch((error: unknown) => {
    if (ConnectError.from(error).code === Code.NotFound) {
      throw new CommandError(`there is no live session ${printable(sessionId)}`);
    }
    throw api.failure(error);
  });
  if (session === undefined) throw new CommandError(`there is no live session ${printable(sessionId)}`);
  context.print(options.json ? JSON.stringify(sessionAsJson(session)) : sessionFields(session, Date.now()));
}
