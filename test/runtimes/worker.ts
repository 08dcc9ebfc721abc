/** The suite as a Worker: a request in, a response out. */
import { createVerifier } from "@session-service/verifier";
import { run } from "./commands.ts";

// In the global scope of a Worker nothing may be fetched and no timer started. A verifier that polls can be made there.
createVerifier({ jwksUrl: "https://keys.example/jwks", issuer: "i", audience: "a", pollIntervalMs: 1000 });

export default {
  fetch: async (request: Request): Promise<Response> => new Response(await run(await request.text())),
};
