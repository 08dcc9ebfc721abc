/**
 * Migration: a session of another system, whose cookie a browser still presents, becomes a session of this service.
 *
 * One old session leads to one session: the id of the new one follows from the old one, and the store reserves that id. So two tabs, two
 * instances and a repeated request get the same refresh token, as long as nobody has used it. Once the token has been used, the browser has
 * a cookie of this service, and a request that it sent before has to be repeated. From then on, and after the session has ended, the old
 * session is not accepted any more. So a logout stays a logout, although the browser may still present the old cookie.
 */
import {
  type Created,
  type CreateLimit,
  recordRefusal,
  type TokenMakers,
  withFirstTokens,
  withinLimit,
} from "../admin/create.ts";
import type { SessionLimit } from "../admin/limit.ts";
import type { Requester } from "../audit.ts";
import { endIfOver } from "../endings/upstream.ts";
import type { Limited } from "../errors.ts";
import { originOf } from "../events/due-lines.ts";
import type { NewSession, SessionId } from "../model.ts";
import type { Random, SessionStore } from "../ports.ts";

/**
 * For how long an old session leads to no second session, in ms: the longest life of a cookie in a browser (RFC 6265bis section 5.5). The
 * system of the old session may renew its cookie, but no longer after the migration.
 */
const RESERVED_MS = 400 * 86_400_000;

/** The audit names this as the credential by which a migrated session was created. */
const MIGRATION = "migration";

export type MigrateDeps = CreateLimit &
  TokenMakers & {
    readonly store: Pick<SessionStore, "create" | "now" | "isNoted" | "end">;
    readonly random: Pick<Random, "nonce">;
    /** Returns the session id, in the partition of the subject, that always follows from a text. */
    readonly sessionIdOf: (subject: string, text: string) => SessionId;
    readonly maxSessionsPerSubject: number;
    /** The reuse interval of refresh tokens (`R` in rotation.ts), in ms. */
    readonly reuseIntervalMs: number;
  };

/** A session of another system, and what the session of this service shall be. */
export type OldSession = {
  readonly wanted: Omit<NewSession, "sid">;
  readonly limit: SessionLimit | undefined;
  /** Identifies the old session, for all its life. */
  readonly id: string;
  /** The name of the cookie that presented it. */
  readonly cookieName: string;
};

export type Migrated = Created & { readonly isNew: boolean };

/**
 * `ended`: the new session has ended, or the browser has its cookie. `in_use`: its cookie was used a moment ago, so the browser has it.
 * `session_limit`: the limit on the sessions of the subject refuses another one.
 */
export type NotMigrated = { readonly ok: false; readonly reason: "ended" | "in_use" | "session_limit" };

/** Creates the session, or finds the one that was created before. @throws StoreUnavailable */
export async function migrate(
  deps: MigrateDeps,
  { wanted, limit, id, cookieName }: OldSession,
  from: Requester,
): Promise<Migrated | NotMigrated | Limited> {
  const { store, audit, maxSessionsPerSubject } = deps;
  const requester = asMigration(from);
  const { subject } = wanted;
  const sid = deps.sessionIdOf(subject, id);
  const result = await withinLimit(deps, wanted, requester, () =>
    store.create({ ...wanted, sid }, deps.random.nonce(), {
      cap: maxSessionsPerSubject,
      limit,
      origin: originOf(requester),
      reservedMs: RESERVED_MS,
    }),
  );
  if (!result.ok) {
    if (result.reason !== "refused") return result;
    recordRefusal(deps, wanted, result.limit, requester);
    return { ok: false, reason: "session_limit" };
  }
  const { session, rotation, isNew } = result;
  const now = store.now(sid);
  if (rotation.generation > 0) {
    // A request of a browser is in flight for at most half the reuse interval, and a session rotates at most once in a reuse interval. So
    // every request that was sent without the new cookie arrives before the second rotation.
    const isRecent = rotation.generation === 1 && Math.abs(now - rotation.childMintedAt) <= deps.reuseIntervalMs;
    return { ok: false, reason: isRecent ? "in_use" : "ended" };
  }
  if (isNew) audit({ event: "session_created", sid, subject, session, cookieName }, requester);
  for (const old of result.evicted) {
    audit({ event: "session_ended", ...old, subject, reason: "session_limit" }, requester);
  }
  await endIfOver(deps, session, requester);
  return { ...withFirstTokens(deps, session, rotation.childNonce, now), isNew };
}

/** Returns the requester with the name under which the audit has migrations. */
function asMigration(from: Requester): Requester {
  const ids = from.correlation?.();
  return { address: () => from.address(), adminName: MIGRATION, ...(ids && { correlation: () => ids }) };
}
