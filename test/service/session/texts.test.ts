/** The exact texts of the domain that callers see. */
import { expect, test } from "vitest";
import { introspectToken } from "../../../src/service/api/admin/introspect-token.ts";
import { ERRORS } from "../../../src/service/session/errors.ts";
import { firstState } from "../../../src/service/session/rotation/rotation.ts";
import { storeMs } from "../../../src/service/session/time.ts";
import { createRefreshTokens } from "../../../src/service/tokens/refresh-token.ts";
import { NOW, SID, someKeys, someSession } from "../../support/tokens.ts";

test("public messages say the same whatever the cause", () => {
  expect(Object.fromEntries(Object.entries(ERRORS).map(([code, { message }]) => [code, message]))).toEqual({
    E001_AUTH_FAILURE: "authentication failed",
    E400_INVALID_REQUEST: "the request is not valid",
    E400_FAILED_PRECONDITION: "the state of the session does not allow it",
    E403_FORBIDDEN: "cross-site requests are not allowed",
    E404_NOT_FOUND: "not found",
    E405_METHOD_NOT_ALLOWED: "method not allowed",
    E409_CONFLICT: "the session was changed in the meantime",
    E413_TOO_LARGE: "the request is too large",
    E415_UNSUPPORTED_MEDIA_TYPE: "the content type is not supported",
    E429_RATE_LIMITED: "too many requests",
    E429_SESSION_LIMIT: "the user has too many sessions",
    E499_CANCELED: "the request was canceled",
    E504_DEADLINE_EXCEEDED: "the deadline was exceeded",
    E500_INTERNAL: "internal error",
    E503_UNAVAILABLE: "temporarily unavailable, try again",
  });
});

test("a refresh token is introspected with its own time and its session's end, in whole seconds of the wall clock", async () => {
  const refreshTokens = createRefreshTokens(someKeys());
  const token = refreshTokens.mint({ sid: SID, generation: 1, nonce: "AAAAAAAAAAA", issuedAt: NOW });
  const session = someSession({ idleExpiresAt: storeMs(NOW + 1_000) });
  const deps = {
    store: {
      find: async () => ({ ok: true as const, session, rotation: firstState("AAAAAAAAAAA"), now: NOW }),
      shiftMs: () => 7_000,
    },
    refreshTokens,
    accessTokens: { verify: () => "malformed" as const },
    reuseIntervalMs: 10_000,
    issuer: "https://auth.example",
  };
  expect(await introspectToken(deps as never, token)).toMatchObject({
    active: true,
    tokenType: "refresh_token",
    claims: {
      iss: "https://auth.example",
      sub: "user-1",
      aud: "https://api.example",
      client_id: "app",
      sid: SID,
      iat: Math.floor(NOW / 1000) + 7,
      exp: Math.floor(NOW / 1000) + 8,
    },
  });
});
