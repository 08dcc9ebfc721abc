/** An API on Fastify for users who are signed in. */
import { readFileSync } from "node:fs";
import { accessTokenHook, createVerifier, getCallerClaims } from "@session-service/verifier";
import Fastify from "fastify";

const { ISSUER = "http://127.0.0.1:8080", AUDIENCE = ISSUER, PORT = "4000" } = process.env;
const { SESSION_ADMIN_URL = "http://127.0.0.1:8081", SESSION_ADMIN_TOKEN_FILE = "data/admin-token" } = process.env;

const verifier = createVerifier({
  adminUrl: SESSION_ADMIN_URL,
  adminToken: () => readFileSync(SESSION_ADMIN_TOKEN_FILE, "utf8").trim(),
  issuer: ISSUER,
  audience: AUDIENCE,
  report: (event) => console.error(event),
});
await verifier.ready;

const app = Fastify();
app.get("/healthz", () => "ok");
app.register(async (api) => {
  // The hook applies to the routes of this scope only. Routes that are registered outside of it stay open.
  api.addHook("onRequest", accessTokenHook(verifier));
  api.get("/api/hello", async (request, reply) => {
    const claims = getCallerClaims(request);
    // `role` is a claim that the login has passed to CreateSession. The session service does not interpret it.
    if (claims?.role !== "editor") return reply.code(403).send({ error: "editors only" });
    return { hello: claims.sub };
  });
});
app.addHook("onClose", () => verifier.close());

await app.listen({ port: Number(PORT), host: "127.0.0.1" });
console.log(`http://127.0.0.1:${PORT}`);
process.once("SIGTERM", () => void app.close());
