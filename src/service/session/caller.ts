/** Who calls with an access token: what is recorded when the call ends sessions, and how it is refused when its own has ended. */
import type { Requester } from "./audit.ts";
import type { Refused } from "./errors.ts";
import { originOf } from "./events/due-lines.ts";
import type { Origin } from "./events/events.ts";
import type { AccessClaims } from "./ports.ts";

/** Returns who acts for the subject of a token (RFC 8693 section 4.1); undefined if nobody does. */
export function actorOf({ all }: AccessClaims): string | undefined {
  const { sub } = { sub: undefined, ...(all.act as object | undefined) };
  return typeof sub === "string" ? sub : undefined;
}

/** Describes a request with an access token. The actor of the token is recorded with whatever the request ends. */
export function originOfCall(caller: AccessClaims, requester: Requester): Origin {
  const actor = actorOf(caller);
  return { ...originOf(requester), ...(actor !== undefined && { actor }) };
}

/** Refuses a call because the session of its access token has ended. */
export const refuseRevoked = (caller: AccessClaims): Refused => ({ ok: false, reason: "revoked", sid: caller.sid });
