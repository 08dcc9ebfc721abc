import type { Audit } from "../../session/audit.ts";
import type { DeviceTools } from "../../session/device-tools.ts";
import type { RevocationFeed } from "../../session/feed.ts";
import type { AccessTokens, Random, RateLimit, RefreshTokens, SessionStore } from "../../session/ports.ts";
import type { WallClock } from "../../session/time.ts";
import type { RefreshCookie } from "../public/cookie.ts";

/** The dependencies of the admin API's handlers. */
export type SessionAdminServiceDeps = {
  readonly store: SessionStore;
  readonly refreshTokens: RefreshTokens;
  readonly accessTokens: AccessTokens;
  readonly random: Random;
  readonly audit: Audit;
  readonly cookie: RefreshCookie;
  readonly device: Pick<DeviceTools, "offers" | "challenges" | "now">;
  readonly feed: Pick<RevocationFeed, "watch">;
  /** Signing keys that were revoked in an emergency. */
  readonly revokedKeyIds: () => readonly string[];
  readonly issuer: string;
  /** The `aud` of a session whose request names none. */
  readonly audience: string;
  /** In ms; the maximum that a request may set, too. */
  readonly sessionIdleTtlMs: number;
  /** In ms; the maximum that a request may set, too. */
  readonly sessionAbsoluteTtlMs: number;
  readonly reuseIntervalMs: number;
  readonly maxSessionsPerSubject: number;
  /** Checks the times in requests. */
  readonly clock: WallClock;
  /** Whether access tokens have the claim `status`, which no session can have as its own then. */
  readonly statusList: boolean;
  /** Whether there is a token endpoint. */
  readonly oauthEndpoints: boolean;
  /** The rate limit of calls by subject. */
  readonly createLimit: RateLimit;
};
