/** The cache, the options and the reports of a verifier. */
import { Code } from "@connectrpc/connect";
import { describe, expect, test } from "vitest";
import { createVerifier } from "../../src/verifier/index.ts";
import { untilTrue } from "../support/until.ts";
import { follow } from "../support/verifier/follow.ts";
import { ADMIN_TOKEN, AUDIENCE, ISSUER, startIssuer } from "../support/verifier/issuer.ts";

describe("a cached verdict", () => {
  test("expires with its token", async () => {
    const issuer = await startIssuer();
    const { verifier, verdictOf, moved } = follow(issuer);
    await verifier.ready;
    const { token } = issuer.issue();
    expect(await verdictOf(token)).toBe("ok");
    moved.wall += 300_000;
    expect(await verdictOf(token)).toBe("expired");
  });

  test("is evicted at the size limit, and verified again", async () => {
    const issuer = await startIssuer();
    const { verifier, verdictOf } = follow(issuer, { cacheSize: 4 });
    await verifier.ready;
    const tokens = Array.from({ length: 20 }, () => issuer.issue().token);
    for (const token of [...tokens, ...tokens]) expect(await verdictOf(token)).toBe("ok");
  });

  test("is the same object for every request with the token", async () => {
    const issuer = await startIssuer();
    const { verifier } = follow(issuer);
    await verifier.ready;
    const { token } = issuer.issue();
    const first = await verifier.verify(token);
    expect(await verifier.verify(Buffer.from(token).toString())).toBe(first);
  });
});

describe("a misconfigured verifier", () => {
  test.each([
    [
      "with a wrong admin token",
      "wrong",
      Code.Unauthenticated,
      "the admin API does not accept the verifier's adminToken",
    ],
    ["without the scope", "without-watch", Code.PermissionDenied, "the verifier's adminToken lacks the scope `watch`"],
  ])("%s rejects `ready`, and recovers with the right one", async (_, given, code, rawMessage) => {
    const issuer = await startIssuer();
    let adminToken = given;
    const { verifier, verdictOf, next } = follow(issuer, { adminToken: () => adminToken, policy: "refuse" });
    const following = next("feed_following");
    await expect(verifier.ready).rejects.toMatchObject({ code, rawMessage });
    expect(await verdictOf(issuer.issue().token)).toBe("unavailable");
    adminToken = ADMIN_TOKEN;
    await following;
    expect(await verdictOf(issuer.issue().token)).toBe("ok");
  });

  test.each([
    ["without an address", {}, /needs adminUrl or jwksUrl/],
    ["without an admin token", { adminUrl: "http://127.0.0.1:1" }, /needs adminToken/],
    [
      "with a policy and no admin API",
      { jwksUrl: "http://127.0.0.1:1", policy: "introspect" },
      /a policy needs adminUrl/,
    ],
    ["with an unbounded cache", { jwksUrl: "http://127.0.0.1:1", cacheSize: Number.NaN }, /cacheSize must be/],
    ["with a cache of one token", { jwksUrl: "http://127.0.0.1:1", cacheSize: 1 }, /cacheSize must be/],
    [
      "with an unbounded staleness",
      { jwksUrl: "http://127.0.0.1:1", maxStalenessMs: Number.NaN },
      /maxStalenessMs must be/,
    ],
    [
      "without an audience",
      { jwksUrl: "http://127.0.0.1:1", audience: [] },
      /audience must be a text, or a list of texts/,
    ],
  ] as const)("%s", (_, options, fault) => {
    expect(() => createVerifier({ issuer: ISSUER, audience: AUDIENCE, ...options })).toThrow(fault);
  });
});

describe("a report", () => {
  test.each<[string, () => void]>([
    [
      "throws",
      () => {
        throw new Error("the log is full");
      },
    ],
    ["rejects", async () => Promise.reject(new Error("the log is full"))],
  ])("that %s changes nothing", async (_, report) => {
    const issuer = await startIssuer();
    const { verifier, verdictOf } = follow(issuer, { report });
    await verifier.ready;
    const { sid, token } = issuer.issue();
    issuer.closeConnections();
    issuer.revoke(sid);
    await untilTrue(async () => (await verdictOf(token)) === "revoked");
  });
});
