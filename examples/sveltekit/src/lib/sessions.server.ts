/** Determines who is signed in, for everything that SvelteKit renders. */
import { readFileSync } from "node:fs";
import { type ActiveUser, createServerSessions, perProcess, requireUser, type User } from "@session-service/server";
import { createVerifier } from "@session-service/verifier";
import { error, redirect } from "@sveltejs/kit";

export const SERVICE = process.env.SESSION_SERVICE_URL ?? "http://127.0.0.1:8080";
export const ADMIN_URL = process.env.SESSION_ADMIN_URL ?? "http://127.0.0.1:8081";
export const adminToken = (): string =>
  readFileSync(process.env.SESSION_ADMIN_TOKEN_FILE ?? "data/admin-token", "utf8").trim();

/** The kit, which is created with the first request, because a build loads this module too and must not connect to the service. */
export const getSessions = perProcess("sessions", () => {
  const issuer = process.env.ISSUER ?? "http://127.0.0.1:8080";
  const audience = process.env.AUDIENCE ?? issuer;
  const report = (event: unknown) => console.error(event);
  const verifier = createVerifier({ adminUrl: ADMIN_URL, adminToken, issuer, audience, report });
  // The verifier holds a connection to the revocation feed. If it stayed open, the process would not end.
  process.once("sveltekit:shutdown", () => verifier.close());
  return createServerSessions({ service: SERVICE, verifier, report });
});

/** Returns the user for a page or an action, which asks for it beside its data, although the hook protects their paths. */
export const requireCurrentUser = (user: User): ActiveUser =>
  requireUser(user, ({ state, status }) => (state === "ended" ? redirect(303, "/login") : error(status)));
