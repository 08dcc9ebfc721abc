/** Determines who is signed in, for everything that Next.js renders. */
import { createServerSessions, perProcess } from "@session-service/server";
import { nextSession } from "@session-service/server/next";
import { cookies, headers } from "next/headers";
import { redirect } from "next/navigation";
import { connection } from "next/server";
import { getVerifier } from "./session";

export const SERVICE = process.env.SESSION_SERVICE_URL ?? "http://127.0.0.1:8080";

/** It is created with the first request, because a build loads this module too and must not connect to the service. */
export const getSessions = perProcess("sessions", () =>
  createServerSessions({
    service: SERVICE,
    verifier: getVerifier(),
    report: (event) => console.warn(event),
  }),
);

export const { currentUser, requireCurrentUser, setCookies, signOut } = nextSession(getSessions, {
  connection,
  cookies,
  headers,
  redirect,
});
