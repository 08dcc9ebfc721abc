/** Follows the revocation feed, and reconnects when the connection is lost. */
import { setTimeout as sleep } from "node:timers/promises";
import { Code, ConnectError } from "@connectrpc/connect";
import { type AdminApi, openAdminApi } from "../admin-api/client.ts";
import type { ConnectionOptions } from "../admin-api/options.ts";
import type { Context } from "../context.ts";
import { EXIT, usageError } from "../exit.ts";
import { createFeedPrinter } from "./print.ts";

type WatchOptions = ConnectionOptions & {
  readonly new?: boolean;
  readonly once?: boolean;
  readonly json?: boolean;
};

/** The first pause before reconnecting, in ms. Each further failure doubles it, up to the maximum. */
const FIRST_RETRY_MS = 250;
const LAST_RETRY_MS = 5_000;
/** A feed sends a heartbeat every second. If it is silent for this long, in ms, it counts as lost. */
const SILENCE_MS = 10_000;

export async function watch(context: Context, options: WatchOptions): Promise<void> {
  if (options.new && options.once) throw usageError("--new and --once exclude each other");
  const api = openAdminApi(context.env, options);
  const print = createFeedPrinter(context, options);
  let cursor = "";
  let retryMs = FIRST_RETRY_MS;
  let isConnected = false;
  for (;;) {
    try {
      for await (const batch of batches(api, cursor)) {
        if (!isConnected) context.note(cursor === "" ? `connected to ${api.url}` : `connected to ${api.url} again`);
        isConnected = true;
        retryMs = FIRST_RETRY_MS;
        print(batch);
        cursor = batch.cursor;
        if (options.once && batch.caughtUp) return;
      }
    } catch (error) {
      const failure = api.failure(error);
      const isFirst = cursor === "" && !isConnected;
      const isLost = failure.exitCode === EXIT.unavailable || ConnectError.from(error).code === Code.ResourceExhausted;
      if (isFirst || options.once || !isLost) throw failure;
      if (isConnected) context.note(failure.message);
    }
    isConnected = false;
    await sleep(retryMs);
    retryMs = Math.min(retryMs * 2, LAST_RETRY_MS);
  }
}

/** Yields the batches from a cursor on, until the connection ends or is silent. */
async function* batches(api: AdminApi, cursor: string) {
  const silent = new AbortController();
  const timer = setTimeout(() => silent.abort(new ConnectError("no heartbeat", Code.Unavailable)), SILENCE_MS);
  try {
    for await (const batch of api.client.watchRevocations({ cursor }, { signal: silent.signal })) {
      timer.refresh();
      yield batch;
    }
  } finally {
    clearTimeout(timer);
    silent.abort();
  }
}
