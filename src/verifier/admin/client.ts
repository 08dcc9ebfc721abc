import type { Interceptor } from "@connectrpc/connect";
import { createConnectTransport } from "@connectrpc/connect-node";
import { ClientSessions } from "../../platform/http2/client-sessions.ts";
import type { Closing } from "../closing.ts";
import { type AdminClient, type AdminClientOptions, createClientBy, MAX_RESPONSE_BYTES } from "./api.ts";

/** Pings detect a dead connection, which would stay unnoticed while the stream is idle. */
const PING = { pingIntervalMs: 2000, pingTimeoutMs: 5000 };

/** Returns a client of the admin API until `closing`; undefined without `adminUrl` and `transport`. @throws TypeError */
export function createAdminClient(options: AdminClientOptions, closing: Closing): AdminClient | undefined {
  return createClientBy(options, (baseUrl, interceptors) => {
    const sessionManager = new ClientSessions(baseUrl, PING, options.nodeOptions);
    closing.onClose(() => sessionManager.close());
    const readMaxBytes = MAX_RESPONSE_BYTES;
    // A feed that is given up because it is silent may have lost its connection, without a word of the network.
    const leaveSilent: Interceptor = (next) => (request) => {
      if (request.stream) request.signal.addEventListener("abort", () => sessionManager.leaveSilent(), { once: true });
      return next(request);
    };
    return createConnectTransport({
      ...{ baseUrl, httpVersion: "2", sessionManager, readMaxBytes },
      interceptors: [...interceptors, leaveSilent],
    });
  });
}
