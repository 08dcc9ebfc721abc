"use client";

import { createSession, type SessionOptions } from "@session-service/browser";
import { useSession } from "@session-service/browser/react";
import { useState } from "react";

/** Displays the session in the browser. It starts with the state that the server has rendered, so nothing flickers. */
export function SignedIn({ initial }: Pick<SessionOptions, "initial">) {
  const [session] = useState(() => createSession({ initial }));
  const { state, claims } = useSession(session, initial);
  return <p id="session">{state === "active" ? `Signed in as ${claims?.sub}` : state}</p>;
}
