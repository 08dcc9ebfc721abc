import { readAllBytes, type UniversalClientFn, universalClientResponseFromFetch } from "@connectrpc/connect/protocol";
import { createTransport } from "@connectrpc/connect/protocol-connect";
import { type AdminClient, createClientBy, MAX_RESPONSE_BYTES } from "../admin-api.ts";
import type { VerifierOptions } from "../options.ts";

/** The greatest size of a request, in bytes. The largest request contains one token. */
const MAX_REQUEST_BYTES = 65_536;

/** Returns a client of the admin API over `fetch`; undefined without `adminUrl` and `transport`. @throws TypeError */
export function createAdminClient(options: VerifierOptions): AdminClient | undefined {
  if (options.nodeOptions !== undefined) throw new TypeError("createVerifier: nodeOptions need Node");
  const { fetch = globalThis.fetch } = options;
  // The whole request is sent as one body, because not every runtime can stream it. Requests are small.
  const httpClient: UniversalClientFn = async ({ url, method, header, body, signal }) => {
    const bytes = body && (await readAllBytes(body, MAX_REQUEST_BYTES));
    const init = {
      method,
      headers: header,
      redirect: "manual",
      ...(bytes && { body: bytes }),
      ...(signal && { signal }),
    };
    return universalClientResponseFromFetch(await fetch(url, init as RequestInit));
  };
  return createClientBy(options, (baseUrl, interceptors) =>
    createTransport({
      httpClient,
      baseUrl,
      interceptors,
      useBinaryFormat: true,
      acceptCompression: [],
      sendCompression: null,
      compressMinBytes: 0,
      readMaxBytes: MAX_RESPONSE_BYTES,
      writeMaxBytes: MAX_REQUEST_BYTES,
    }),
  );
}
