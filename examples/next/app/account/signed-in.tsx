"use client";

import { createSession, type Session, type SessionOptions } from "@session-service/browser";
import { useSession } from "@session-service/browser/react";

let ofPage: Session | undefined;

/** Returns the session of the page, which is loaded once, however often its components are mounted. A server has one for each request. */
function sessionOf({ initial }: Pick<SessionOptions, "initial">): Session {
  if (typeof document === "undefined") return createSession({ initial });
  ofPage ??= createSession({ initial });
  return ofPage;
}

/** Displays the session in the browser. It starts with the state that the server has rendered, so nothing flickers. */
export function SignedIn({ initial }: Pick<SessionOptions, "initial">) {
  const { state, claims } = useSession(sessionOf({ initial }), initial);
  return <p id="session">{state === "active" ? `Signed in as ${claims?.sub}` : state}</p>;
}
