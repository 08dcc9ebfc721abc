/** A Worker as docs/tasks/verifier.md has it: its verifier is created in the global scope, and serves all requests. */

import { createServerSessions } from "@session-service/server";
import { authorize, createVerifier, type VerifierOptions } from "@session-service/verifier";
import { createFetchHandler } from "connect-http-routes/fetch";

/** The options of the verifier. The test defines them in front of this code. */
declare const OPTIONS: VerifierOptions;

const verifier = createVerifier(OPTIONS);
createServerSessions({ service: "https://sessions.example", verifier });
createFetchHandler({ routes() {}, tables: [] });

/** What happens where the verifier would follow keys and revocations. */
let refusal: unknown;
try {
  const { pollIntervalMs: _, ...following } = OPTIONS;
  createVerifier(following);
} catch (error) {
  refusal = error;
}

export default {
  async fetch(request: Request): Promise<Response> {
    if (new URL(request.url).pathname === "/refusal") return new Response(String(refusal));
    const caller = await authorize(verifier, request.headers.get("authorization"));
    if (!caller.ok) return new Response(caller.body, { status: caller.status, headers: caller.headers });
    return new Response(caller.claims.sub);
  },
};
