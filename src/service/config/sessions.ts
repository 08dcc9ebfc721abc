import { join } from "node:path";
import { DATA_FILES } from "./data-dir.ts";
import type { AddFault, Read } from "./reader.ts";
import { DAY_MS, duration, integer, list, oneOf, plainUrl, readableFile, SECOND_MS, text } from "./values.ts";

export function readSessions(read: Read, addFault: AddFault) {
  const sessions = {
    accessTokenTtlMs: read("ACCESS_TOKEN_TTL", duration(SECOND_MS, DAY_MS), 300 * SECOND_MS),
    sessionIdleTtlMs: read("SESSION_IDLE_TTL", duration(SECOND_MS, 3660 * DAY_MS), 14 * DAY_MS),
    sessionAbsoluteTtlMs: read("SESSION_ABSOLUTE_TTL", duration(SECOND_MS, 3660 * DAY_MS), 90 * DAY_MS),
    actorSessionMaxMs: read("ACTOR_SESSION_MAX", duration(SECOND_MS, DAY_MS), 3600 * SECOND_MS),
    reuseIntervalMs: read("REUSE_INTERVAL", duration(0, 300 * SECOND_MS), 10 * SECOND_MS),
    lastSeen: read("LAST_SEEN", oneOf("off", "truncated", "full"), "off" as const),
    maxSessionsPerSubject: read("MAX_SESSIONS_PER_SUBJECT", integer(1, 10_000), 100),
    sessionPoliciesFile: read("SESSION_POLICIES_FILE", readableFile, undefined),
  };
  if (sessions.sessionIdleTtlMs > sessions.sessionAbsoluteTtlMs) {
    addFault("SESSION_IDLE_TTL must not exceed SESSION_ABSOLUTE_TTL");
  }
  if (sessions.reuseIntervalMs * 3 > sessions.sessionIdleTtlMs) {
    addFault("REUSE_INTERVAL must be at most a third of SESSION_IDLE_TTL");
  }
  return sessions;
}

export function readTokens(read: Read, dataDir: string) {
  return {
    keysFile: read("KEYS_FILE", text(4096), join(dataDir, DATA_FILES.keys)),
    signingAlgorithm: read("SIGNING_ALGORITHM", oneOf("ES256", "EdDSA", "RS256"), undefined),
    issuer: read("ISSUER", plainUrl, undefined),
    audiences: read("AUDIENCE", list(text(255)), undefined),
  };
}
