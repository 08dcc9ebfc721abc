import type { LimitPolicy } from "../../session/admin/limit.ts";
import type { Audit } from "../../session/audit.ts";
import type { DeviceTools } from "../../session/devices/presented.ts";
import type { RevocationFeed } from "../../session/feed/feed.ts";
import type { AccessTokens, Random, RateLimit, RefreshTokens, SessionStore } from "../../session/ports.ts";
import type { WallClock } from "../../session/time.ts";
import type { SubjectSignals } from "../../signals/of-subject.ts";
import type { RefreshCookie } from "../public/cookie.ts";

export type SessionAdminServiceDeps = {
  readonly store: SessionStore;
  readonly refreshTokens: RefreshTokens;
  readonly accessTokens: AccessTokens;
  readonly random: Random;
  readonly audit: Audit;
  readonly cookie: RefreshCookie;
  readonly device: Pick<DeviceTools, "offers" | "challenges" | "now">;
  readonly feed: Pick<RevocationFeed, "watch">;
  /** Returns the ids of the signing keys that were revoked in an emergency. */
  readonly revokedKeyIds: () => readonly string[];
  readonly issuer: string;
  /** The audience (`aud`) of a session whose request names none. */
  readonly audience: string;
  /** The default idle timeout in ms, and the longest one that a request may set. */
  readonly sessionIdleTtlMs: number;
  /** The default absolute lifetime in ms, and the longest one that a request may set. */
  readonly sessionAbsoluteTtlMs: number;
  /** The default idle timeout and absolute lifetime of a session with an actor in ms, and the longest that a request may set. */
  readonly actorSessionMaxMs: number;
  readonly reuseIntervalMs: number;
  readonly maxSessionsPerSubject: number;
  readonly limitPolicies: () => readonly LimitPolicy[];
  readonly clock: WallClock;
  readonly oauthEndpoints: boolean;
  /** Undefined if SIGNALS is off. */
  readonly subjectSignals: SubjectSignals | undefined;
  /** Limits how often sessions are created for one subject. */
  readonly createLimit: RateLimit;
  readonly updateLimit: RateLimit;
};
