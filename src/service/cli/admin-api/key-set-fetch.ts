/** Fetches the key set with the TLS options of the admin API, which the `fetch` of Node does not take. */
import { get } from "node:https";
import { Readable } from "node:stream";
import type { ConnectionOptions } from "node:tls";
import { refuseUpgrade } from "../../../platform/net/refuse-upgrade.ts";

/** Returns a function that serves as the verifier's `fetch`. Each call opens a connection, so that it uses the present TLS files. */
export function createKeySetFetch(tls: Pick<ConnectionOptions, "secureContext">): typeof fetch {
  return (url, { signal } = {}) => {
    const { promise, resolve, reject } = Promise.withResolvers<Response>();
    const request = get(String(url), { ...tls, agent: false, ...(signal && { signal }) }, (response) => {
      const { statusCode: status = 0, headers } = response;
      const cacheControl = headers["cache-control"] ?? "";
      if (status === 200) {
        const body = Readable.toWeb(response) as ReadableStream<Uint8Array<ArrayBuffer>>;
        resolve(new Response(body, { headers: { "cache-control": cacheControl } }));
      } else {
        response.resume();
        reject(new Error(`the key set responds ${status}`));
      }
    });
    refuseUpgrade(request, () => reject(new Error("the key set responds 101"))).on("error", reject);
    return promise;
  };
}
