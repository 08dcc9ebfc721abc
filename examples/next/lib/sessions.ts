/** Determines who is signed in, for everything that Next.js renders. */
import {
  type ActiveUser,
  createServerSessions,
  requireUser,
  type ServerSessions,
  type User,
} from "@session-service/server";
import { headers } from "next/headers";
import { redirect } from "next/navigation";
import { getVerifier } from "./session";

export const SERVICE = process.env.SESSION_SERVICE_URL ?? "http://127.0.0.1:8080";

/** The process keeps one object for its sessions, because Next.js loads this module for the proxy and for the pages. */
const kept = globalThis as typeof globalThis & { serverSessions?: ServerSessions };

export function getSessions(): ServerSessions {
  kept.serverSessions ??= createServerSessions({ service: SERVICE, verifier: getVerifier() });
  return kept.serverSessions;
}

/** Returns the user of the current request, in pages, route handlers and actions. It does not call the service. */
export async function currentUser(): Promise<User> {
  return getSessions().current(await headers());
}

/**
 * Returns the user for a page or an action, which asks for it beside its data, although the proxy protects their paths. Leads to the login if
 * nobody is signed in. @throws SessionError while the service cannot be reached; `error.tsx` displays it
 */
export async function requireCurrentUser(): Promise<ActiveUser> {
  return requireUser(await currentUser(), (error) => {
    if (error.state === "ended") redirect("/login");
    throw error;
  });
}
