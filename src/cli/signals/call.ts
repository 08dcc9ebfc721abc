import { Code, ConnectError } from "@connectrpc/connect";
import { type AdminApi, openAdminApi } from "../admin-api/client.ts";
import type { ConnectionOptions } from "../admin-api/options.ts";
import type { Context } from "../context.ts";
import { CommandError } from "../exit.ts";

export type Options = ConnectionOptions & { readonly json?: boolean };

/** Calls the admin API. @throws CommandError */
export async function call<T>(
  context: Context,
  options: Options,
  method: (signals: AdminApi["signals"]) => Promise<T>,
): Promise<T> {
  const api = openAdminApi(context.env, options);
  return await method(api.signals).catch((error) => {
    const { code } = ConnectError.from(error);
    if (code === Code.NotFound) throw new CommandError("there is no such subscription");
    if (code !== Code.Unimplemented) throw api.failure(error);
    throw new CommandError(`${api.url} has no subscriptions: SIGNALS is off, or it is not the admin API`);
  });
}
