import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { readyKeys } from "../../../src/service/tokens/keys.ts";
import { createVerifier, type Refusal } from "../../../src/verifier/index.ts";
import { ring } from "./forge.ts";
import { AUDIENCE, ISSUER } from "./issuer.ts";

/** Starts a verifier that trusts the key of `forge.ts`, and records its requests. */
export async function startTarget() {
  // No connection is kept: on a busy machine, a request may be written to one that the server is just closing.
  const server = createServer((_, response) =>
    response.writeHead(200, { connection: "close" }).end(JSON.stringify(readyKeys(ring).jwks)),
  );
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const jwksUrl = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
  const fetched: string[] = [];
  const recording: typeof fetch = (input, init) => {
    fetched.push(String(input));
    return fetch(input, init);
  };
  const verifier = createVerifier({ jwksUrl, issuer: ISSUER, audience: AUDIENCE, fetch: recording });
  await verifier.ready;
  return {
    verifier,
    jwksUrl,
    fetched,
    /** Returns `ok`, or the reason of the rejection. */
    async verdictOf(token: string): Promise<Refusal | "ok"> {
      const verdict = await verifier.verify(token);
      return verdict.ok ? "ok" : verdict.reason;
    },
    close() {
      verifier.close();
      server.close();
    },
  };
}
