/** An API on Express for users who are signed in. */
import { readFileSync } from "node:fs";
import { accessTokenMiddleware, createVerifier, getCallerClaims } from "@session-service/verifier";
import express from "express";

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

const app = express();
app.get("/healthz", (_request, response) => void response.send("ok"));
app.use("/api", accessTokenMiddleware(verifier));
app.get("/api/hello", (request, response) => {
  const claims = getCallerClaims(request);
  // `role` is a claim that the login has passed to CreateSession. The session service does not interpret it.
  if (claims?.role !== "editor") response.status(403).json({ error: "editors only" });
  else response.json({ hello: claims.sub });
});

const server = app.listen(Number(PORT), "127.0.0.1", () => console.log(`http://127.0.0.1:${PORT}`));
process.once("SIGTERM", () => {
  server.close();
  void verifier.close();
});
