import { type NewSession, presentFields, type Session } from "../model.ts";
import { toWallClock } from "../time.ts";

/** The settings that a session has where nobody chooses. */
type Defaults = { readonly sessionIdleTtlMs: number; readonly sessionAbsoluteTtlMs: number };

type Login = Pick<
  NewSession,
  "subject" | "clientId" | "audience" | "claims" | "client" | "authentication" | "kind" | "upstream"
> & {
  /** The longest life of the session, in ms; absent if only the settings limit it. */
  readonly maxLifetimeMs?: number | undefined;
};

/** The shortest life of a session, in ms. The provider may end one that is just being created. */
const MIN_LIFETIME_MS = 1_000;
/** How far the clocks of the store and of a provider may differ from that of this service, in ms. */
const CLOCK_SKEW_MS = 60_000;

/** Returns the session of a login on a page of this service, which no application describes. */
export function sessionOfLogin(
  { sessionIdleTtlMs, sessionAbsoluteTtlMs }: Defaults,
  {
    subject,
    clientId,
    audience,
    claims,
    client,
    authentication,
    kind,
    upstream,
    maxLifetimeMs = sessionAbsoluteTtlMs,
  }: Login,
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
    absoluteLifetimeMs: Math.min(sessionAbsoluteTtlMs, Math.max(MIN_LIFETIME_MS, maxLifetimeMs)),
    deviceRequired: undefined,
    transport: undefined,
    dpopJkt: undefined,
    persistent: undefined,
    actor: undefined,
  });
}

/** A login in a browser that has a session already. */
type NextLogin = Required<Pick<NewSession, "subject" | "upstream">> & {
  /** When sessions of the login end at the latest, in ms since the epoch; undefined if the provider does not limit them. */
  readonly endsAtMs: number | undefined;
};

/**
 * Returns whether a session may go on after the next login. Otherwise that gets a session of its own.
 * @param shiftMs by how many ms the wall clock is ahead of the time of the session's store
 */
export function mayContinue(
  { subject, upstream, absoluteExpiresAt }: Session,
  { endsAtMs = Number.POSITIVE_INFINITY, ...next }: NextLogin,
  shiftMs: number,
): boolean {
  if (subject !== next.subject) return false;
  // The provider has begun another session. It would end that one later, and this session could not be found by it.
  if (differ(upstream?.sessionId, next.upstream.sessionId)) return false;
  // The life of a session is fixed at its creation, and the provider may allow less now.
  return toWallClock(absoluteExpiresAt, shiftMs) <= endsAtMs + CLOCK_SKEW_MS;
}

/** Returns whether two sessions of a provider are different ones. Not every provider names its sessions. */
const differ = (one: string | undefined, other: string | undefined) =>
  one !== undefined && other !== undefined && one !== other;
