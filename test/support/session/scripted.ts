/** A port for tests of the domain's use cases: each verb of the store has the outcome that the test gives, and every step is recorded. */
import type { AuditEvent, Requester } from "../../../src/service/session/audit.ts";
import type { Session, SessionId } from "../../../src/service/session/model.ts";
import type {
  AccessTokenResult,
  Found,
  RateLimit,
  RefreshToken,
  RefreshTokens,
  SessionStore,
} from "../../../src/service/session/ports.ts";
import { firstState } from "../../../src/service/session/rotation/rotation.ts";
import { storeMs, wallMs } from "../../../src/service/session/time.ts";

export const NOW = storeMs(1_700_000_000_000);
export const FRESH_NONCE = "fresh-nonce";

/** The caller of every test. */
export const REQUESTER: Requester = { address: () => "192.0.2.7", adminName: undefined };
/** What a step of the store gets to know of the caller. */
export const ORIGIN = { address: "192.0.2.7" };

/** Returns the session id that consists of a letter, such as `sidOf("b")`. */
export const sidOf = (letter: string) => `${letter.repeat(22)}A` as SessionId;
export const SID = sidOf("a");

export function sessionOf(more: Partial<Session> = {}): Session {
  return {
    sid: SID,
    subject: "alice",
    clientId: "web",
    audience: "api",
    claims: "{}",
    client: { userAgent: "", ipAddress: "", displayName: "" },
    idleTimeoutMs: 60_000,
    absoluteLifetimeMs: 600_000,
    createdAt: NOW,
    lastRefreshedAt: NOW,
    idleExpiresAt: storeMs(NOW + 60_999),
    absoluteExpiresAt: storeMs(NOW + 600_000),
    ...more,
  };
}

/** Returns what the store returns for a new session. */
export function createdOf(session: Session) {
  const nothing = { evicted: [], replaced: undefined, newDevice: false };
  return { ok: true as const, isNew: true, session, rotation: firstState(FRESH_NONCE), ...nothing };
}

export const tokenOf = (sid: SessionId = SID, more: Partial<RefreshToken> = {}): RefreshToken => ({
  sid,
  generation: 3,
  nonce: "old-nonce",
  issuedAt: storeMs(NOW - 5_000),
  ...more,
});

/** What the store finds by the id of a live session. */
export const found = (session: Session): Found => ({ ok: true, session, rotation: firstState("child"), now: NOW });

/** Returns the outcome of `find` for each of the sessions, and `unknown` for every other id. */
export const findOf =
  (...sessions: readonly Session[]): SessionStore["find"] =>
  async (sid) => {
    const session = sessions.find((each) => each.sid === sid);
    return session === undefined ? { ok: false, reason: "unknown" } : found(session);
  };

/** One step: a verb of the store with its arguments, or `audit` with the event. */
type Step = readonly [string, ...unknown[]];

export function script(outcomes: Partial<SessionStore>) {
  const steps: Step[] = [];
  const store = new Proxy({} as SessionStore, {
    get:
      (_, verb: string) =>
      async (...given: readonly unknown[]) => {
        steps.push([verb, ...given]);
        const outcome = outcomes[verb as keyof SessionStore] as ((...given: readonly unknown[]) => unknown) | undefined;
        if (outcome === undefined) throw new Error(`this use case must not call ${verb}`);
        return outcome(...given);
      },
  });
  const requesters = new Set<Requester>();
  const audit = (event: AuditEvent, requester: Requester) => {
    steps.push(["audit", event]);
    requesters.add(requester);
  };
  return {
    store,
    audit,
    steps,
    requesters,
    /** The steps of one kind. */
    stepsOf: (kind: string) => steps.filter(([name]) => name === kind).map(([, ...given]) => given),
  };
}

/** A rate limit that refuses with `retryAfterMs`, or none. `counted` has the keys that count now. */
export function limitOf(retryAfterMs?: number): RateLimit & { readonly counted: readonly string[] } {
  const counted: string[] = [];
  return {
    counted,
    take(key) {
      counted.push(key);
      return retryAfterMs;
    },
    giveBack(key) {
      const at = counted.indexOf(key);
      if (at === -1) throw new Error(`nothing was counted for ${key}`);
      counted.splice(at, 1);
    },
  };
}

/** Refresh tokens whose text is their JSON. `?unknown_key` is the text of one whose MAC key is unknown, and so on. */
export const REFRESH_TOKENS: RefreshTokens = {
  mint: (token) => JSON.stringify(token),
  parse: (text) =>
    text.startsWith("?")
      ? { ok: false, reason: text.slice(1) as "malformed" }
      : { ok: true, token: JSON.parse(text) as RefreshToken },
};

/** Access tokens that contain what they were issued for, and verify as `result`. */
export const accessTokens = (result: AccessTokenResult = { ok: false, reason: "malformed" }) => ({
  issue: (session: Session, now: number, deviceProven?: boolean) => ({
    token: JSON.stringify({ sid: session.sid, now, deviceProven }),
    expiresAt: wallMs(now + 1),
  }),
  verify: () => result,
});

export const RANDOM = { sessionId: () => SID, nonce: () => FRESH_NONCE };
