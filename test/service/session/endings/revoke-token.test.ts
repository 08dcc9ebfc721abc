/** The revocation of a token of either type (RFC 7009). */
import { expect, test } from "vitest";
import { UNKNOWN_REQUESTER } from "../../../../src/service/session/audit.ts";
import { revokeToken } from "../../../../src/service/session/endings/revoke-token.ts";
import {
  accessTokens,
  ORIGIN,
  REFRESH_TOKENS,
  REQUESTER,
  SID,
  script,
  tokenOf,
} from "../../../support/session/scripted.ts";

type Deps = Parameters<typeof revokeToken>[0];

test.each([
  ["malformed", ["refresh", "access"], "expired"],
  ["forged", ["refresh"], "forged"],
  ["unknown_key", ["refresh"], "unknown_key"],
] as const)("a refresh token that is %s is read as: %j", async (reason, read, refusal) => {
  const asked: string[] = [];
  const refuse = (type: string, why: string) => () => {
    asked.push(type);
    return { ok: false, reason: why };
  };
  const deps = {
    refreshTokens: { parse: refuse("refresh", reason) },
    accessTokens: { verify: refuse("access", "expired") },
    audiences: new Set(["a"]),
  } as unknown as Deps;
  expect(await revokeToken(deps, "text", UNKNOWN_REQUESTER)).toEqual({ ok: false, reason: refusal });
  expect(asked).toEqual(read);
});

test("an access token ends its session", async () => {
  const port = script({ end: async () => ({ ok: true, wasLive: true, subject: "alice" }) });
  const claims = { sid: SID, sub: "alice", aud: ["a"], exp: 1, jti: "j", all: {} };
  const deps = { ...port, accessTokens: accessTokens({ ok: true, claims }), audiences: new Set(["a"]) };
  const refreshTokens = { parse: () => ({ ok: false as const, reason: "malformed" as const }) };
  expect(await revokeToken({ ...deps, refreshTokens }, "text", REQUESTER)).toMatchObject({ ok: true });
  expect(port.stepsOf("end")).toEqual([[SID, "logout", { ...ORIGIN, subject: "alice" }]]);
});

test("the proof that comes with a refresh token is what its session's key asks for", async () => {
  const port = script({ end: async () => ({ ok: true, wasLive: false }) });
  const deps = { ...port, refreshTokens: REFRESH_TOKENS, accessTokens: accessTokens(), audiences: new Set(["a"]) };
  const token = tokenOf();
  const proof = { thumbprint: "t" };
  expect(await revokeToken(deps, REFRESH_TOKENS.mint(token), REQUESTER, proof)).toEqual({ ok: true });
  expect(port.stepsOf("end")).toMatchObject([[SID, "logout", {}, { issuedAt: token.issuedAt, proof }]]);
});
