/** The entry point of the package for every runtime other than Node. It has the same functions and types as that for Node. */
import { readAllBytes, type UniversalClientFn, universalClientResponseFromFetch } from "@connectrpc/connect/protocol";
import { createTransport } from "@connectrpc/connect/protocol-connect";
import { type AdminClient, createClientBy, MAX_RESPONSE_BYTES } from "../admin/api.ts";
import { KeySet } from "../keys/key-set.ts";
import type { VerifierOptions } from "../options.ts";
import { createVerifierOn, type Runtime, type Verifier } from "../verifier.ts";
import { checkToken, importKey, type Key } from "./token.ts";
import { verifyProof } from "./verify-proof.ts";

export * from "../common.ts";

/** The parts of the verifier that work in every runtime with WebCrypto and fetch. */
const WEB: Runtime<Key, KeySet<Key>> = {
  createKeys: (deps) => new KeySet(deps, importKey),
  checkToken,
  verifyProof,
  createAdminClient,
};

/**
 * Creates a verifier for Deno, Bun, Workers and browsers, which works like the one for Node. An isolate whose connections end with each
 * request needs `pollIntervalMs`.
 * @throws TypeError, RangeError for options that cannot work
 */
export function createVerifier(options: VerifierOptions): Verifier {
  return createVerifierOn(WEB, options);
}

/** The greatest size of a request, in bytes. The largest request contains one token. */
const MAX_REQUEST_BYTES = 65_536;

/** Returns a client of the admin API over `fetch`; undefined without `adminUrl` and `transport`. @throws TypeError */
function createAdminClient(options: VerifierOptions): AdminClient | undefined {
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
