"use client";

import { createSession, type SessionOptions } from "@session-service/browser";
import { useSession } from "@session-service/browser/react";
import { useState } from "react";

/** Follows the session in the browser, from what the server rendered with: no refresh, and nothing that flashes. */
export function SignedIn({ initial }: Pick<SessionOptions, "initial">) {
  const [session] = useState(() => createSession({ initial }));
  const { state, claims } = useSession(session);
  return <p id="session">{state === "active" ? `Signed in as ${claims?.sub}` : state}</p>;
}
