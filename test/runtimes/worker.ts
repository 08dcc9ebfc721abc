/** The tests of suite.ts as a Worker, which receives commands as requests and responds with the results. */
import { createVerifier } from "@session-service/verifier";
import { run } from "./commands.ts";

// The global scope of a Worker must not fetch or start timers. Creating a verifier that polls is nevertheless allowed there.
createVerifier({ jwksUrl: "https://keys.example/jwks", issuer: "i", audience: "a", pollIntervalMs: 1000 });

export default {
  fetch: async (request: Request): Promise<Response> => new Response(await run(await request.text())),
};
