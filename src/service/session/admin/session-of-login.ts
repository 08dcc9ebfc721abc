import { type NewSession, presentFields } from "../model.ts";

/** The settings that a session has where nobody chooses. */
type Defaults = { readonly sessionIdleTtlMs: number; readonly sessionAbsoluteTtlMs: number };

type Login = Pick<
  NewSession,
  "subject" | "clientId" | "audience" | "claims" | "client" | "authentication" | "kind" | "upstream"
>;

/** Returns the session of a login on a page of this service, which no application describes. */
export function sessionOfLogin(
  { sessionIdleTtlMs, sessionAbsoluteTtlMs }: Defaults,
  { subject, clientId, audience, claims, client, authentication, kind, upstream }: Login,
): Omit<NewSession, "sid"> {
  return presentFields<Omit<NewSession, "sid">>({
    subject,
    clientId,
    audience,
    claims,
    client,
    authentication,
    kind,
    upstream,
    idleTimeoutMs: sessionIdleTtlMs,
    absoluteLifetimeMs: sessionAbsoluteTtlMs,
    deviceRequired: undefined,
    transport: undefined,
    dpopJkt: undefined,
    persistent: undefined,
    actor: undefined,
  });
}
