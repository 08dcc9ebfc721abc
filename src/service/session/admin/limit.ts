/** How many live sessions a subject may have. Stores apply a limit in the step that creates a session. */
import type { ClientKind, NewSession } from "../model.ts";

/** Which sessions of the subject a limit counts: all, or those with the same client id, or the same kind of client, as the new session. */
export type LimitScope = "subject" | "client_id" | "client_kind";

/**
 * What happens if the new session is one too many. A session counts as used when it is refreshed. The least recently used one is looked for
 * among the `LIMIT_WINDOW` oldest, so that the work does not grow with the number of sessions.
 */
export type WhenExceeded = "end_least_recently_used" | "end_oldest" | "refuse";

export type SessionLimit = {
  readonly scope: LimitScope;
  /** 1 to `MAX_SESSIONS`. */
  readonly maxSessions: number;
  readonly whenExceeded: WhenExceeded;
};

/** The largest limit. A step of a store examines the sessions that a limit counts, so the bound keeps its work small. */
export const MAX_SESSIONS = 100;

/** How many sessions, the oldest, are compared by their last use. */
export const LIMIT_WINDOW = 64;

/** How many live sessions a refusal lists, at most. */
export const MAX_LISTED = 10;

/** A limit, and the new sessions for which it holds. */
export type LimitPolicy = {
  readonly clientId: string | undefined;
  readonly clientKind: ClientKind | undefined;
  readonly limit: SessionLimit;
};

/** Returns the limit of the first policy that matches a new session; undefined if there is none. */
export function limitOf(
  policies: readonly LimitPolicy[],
  session: Pick<NewSession, "clientId" | "kind">,
): SessionLimit | undefined {
  return policies.find(
    ({ clientId = session.clientId, clientKind = session.kind }) =>
      clientId === session.clientId && clientKind === session.kind,
  )?.limit;
}

/** Returns what sessions have in common that a limit counts together. */
export function groupOf({ clientId, kind }: Pick<NewSession, "clientId" | "kind">, scope: LimitScope): string {
  if (scope === "client_id") return clientId;
  return scope === "client_kind" ? (kind ?? "") : "";
}

/**
 * Removes sessions from a list in order of creation, and returns them: one after the other the least recently used of the `window` oldest
 * that are left. If several were used at the same time, the oldest is removed.
 */
export function takeExcess<T extends { readonly usedAt: number }>(sessions: T[], excess: number, window: number): T[] {
  const taken: T[] = [];
  while (taken.length < excess && sessions.length > 0) {
    const times = sessions.slice(0, window).map(({ usedAt }) => usedAt);
    taken.push(...sessions.splice(times.indexOf(Math.min(...times)), 1));
  }
  return taken;
}

export const windowOf = ({ whenExceeded }: SessionLimit): number => (whenExceeded === "end_oldest" ? 1 : LIMIT_WINDOW);
