import { Code, ConnectError } from "@connectrpc/connect";
import { callOptions, openAdminApi } from "../admin-api/client.ts";
import type { ConnectionOptions } from "../admin-api/options.ts";
import type { Context } from "../context.ts";
import { CommandError } from "../exit.ts";
import { printable } from "../output/printable.ts";
import { sessionAsJson, sessionFields } from "./view.ts";

export async function unbindSession(
  context: Context,
  sessionId: string,
  options: ConnectionOptions & { readonly json?: boolean },
): Promise<void> {
  const api = openAdminApi(context.env, options);
  const { session } = await api.client.unbindDevice({ sessionId }, callOptions()).catch((error) => {
    if (ConnectError.from(error).code !== Code.NotFound) throw api.failure(error);
    throw new CommandError(`there is no live session ${printable(sessionId)}`);
  });
  if (session === undefined) return;
  context.print(options.json ? JSON.stringify(sessionAsJson(session)) : sessionFields(session, Date.now()));
}
