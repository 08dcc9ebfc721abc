/** Keys that are rotated, withdrawn or revoked. */
import { describe, expect, test } from "vitest";
import { generateMacKey, generateRing, generateSigningKey } from "../../src/service/tokens/generate-key.ts";
import type { Ring, RingKey } from "../../src/service/tokens/ring.ts";
import { revokeKey, rotateKeys } from "../../src/service/tokens/ring-steps.ts";
import { untilTrue } from "../support/until.ts";
import { follow } from "../support/verifier/follow.ts";
import { startIssuer } from "../support/verifier/issuer.ts";

/** The default of `maxStalenessMs`. */
const LIMIT_MS = 5000;

describe("keys", () => {
  const times = { jwksMaxAgeMs: 0, accessTokenTtlMs: 300_000, sessionIdleTtlMs: 86_400_000, pickUpMs: 0 };
  const generate = (kind: "signing" | "mac") =>
    kind === "mac" ? generateMacKey(Date.now()) : generateSigningKey("ES256", Date.now());
  const rotated = (ring: Ring): Ring => rotateKeys(ring, ["signing"], generate, Date.now(), times, true);
  const signingKid = (ring: Ring) => ring.signing.find((key) => key.state === "signing")?.kid ?? "";

  test("that rotate need no read: each was published before it signed", async () => {
    const issuer = await startIssuer();
    const { verifier, verdictOf } = follow(issuer);
    await verifier.ready;
    const reads = issuer.seen.jwks;
    const before = issuer.issue().token;
    issuer.setRing(rotated(issuer.state.ring));
    expect(await verdictOf(issuer.issue().token)).toBe("ok");
    expect(await verdictOf(before)).toBe("ok");
    expect(issuer.seen.jwks).toBe(reads);
  });

  test("that are unknown are read with their first token, then at most once per cooldown", async () => {
    const issuer = await startIssuer();
    const { verifier, verdictOf, moved } = follow(issuer);
    await verifier.ready;
    const reads = issuer.seen.jwks;
    issuer.setRing(generateRing("EdDSA", Date.now()));
    moved.monotonic += 1000; // After a second, the verifier may read the keys again.
    const { token } = issuer.issue();
    expect(await Promise.all(Array.from({ length: 50 }, () => verdictOf(token)))).toEqual(Array(50).fill("ok"));
    expect(issuer.seen.jwks).toBe(reads + 1);
    issuer.setRing(generateRing("ES256", Date.now()));
    expect(await verdictOf(issuer.issue().token)).toBe("unknown_key");
    expect(issuer.seen.jwks).toBe(reads + 1);
    moved.monotonic += 1000;
    expect(await verdictOf(issuer.issue().token)).toBe("ok");
  });

  test("that are withdrawn invalidate every token that they verified", async () => {
    const issuer = await startIssuer();
    const { verifier, verdictOf, moved } = follow(issuer);
    await verifier.ready;
    const { token } = issuer.issue();
    expect(await verdictOf(token)).toBe("ok");
    issuer.setRing(generateRing("ES256", Date.now()));
    moved.monotonic += 1000;
    expect(await verdictOf(issuer.issue().token)).toBe("ok"); // The key id is unknown, so the verifier reads the keys again.
    expect(await verdictOf(token)).toBe("unknown_key");
  });

  test("are read again as the issuer's max-age requires", async () => {
    const issuer = await startIssuer();
    issuer.state.jwksHeaders = { "cache-control": "public, max-age=1" };
    const { verifier, verdictOf } = follow(issuer);
    await verifier.ready;
    const { token } = issuer.issue();
    const verdict = await verifier.verify(token);
    expect(verdict.ok).toBe(true);
    // The third request shows that the verifier has processed the second response.
    await untilTrue(() => issuer.seen.jwks === 3);
    expect(await verifier.verify(token)).toBe(verdict); // The verdict is cached, because the key is still published.
    issuer.setRing(generateRing("ES256", Date.now()));
    await untilTrue(async () => (await verdictOf(token)) === "unknown_key");
  });

  test("that are replaced under the same kid do not verify older tokens", async () => {
    const issuer = await startIssuer();
    const { verifier, verdictOf, moved } = follow(issuer);
    await verifier.ready;
    const { token } = issuer.issue();
    expect(await verdictOf(token)).toBe("ok");
    const other = generateRing("ES256", Date.now());
    const kid = signingKid(issuer.state.ring);
    issuer.setRing({
      ...other,
      signing: other.signing.map((key): RingKey => (key.state === "signing" ? { ...key, kid } : key)),
    });
    moved.monotonic += 1000;
    await verdictOf(
      issuer
        .issue({}, 1)
        .token.replace(/^[^.]+/, Buffer.from(`{"typ":"at+jwt","alg":"ES256","kid":"?"}`).toString("base64url")),
    );
    expect(await verdictOf(token)).toBe("forged");
    expect(await verdictOf(issuer.issue().token)).toBe("ok");
  });

  test("that are revoked in an emergency are rejected as soon as the feed reports it, whatever the key set contains", async () => {
    const issuer = await startIssuer();
    const { verifier, verdictOf, moved } = follow(issuer);
    await verifier.ready;
    const { token } = issuer.issue();
    const jwks = JSON.stringify(issuer.jwks());
    expect(await verdictOf(token)).toBe("ok");
    issuer.state.jwksBody = jwks;
    const kid = signingKid(issuer.state.ring);
    expect(verifier.state().kids).toContain(kid);
    issuer.setRing(revokeKey(issuer.state.ring, kid, generate, Date.now()));
    await untilTrue(async () => (await verdictOf(token)) === "revoked_key");
    expect(verifier.state().kids).not.toContain(kid);
    expect(verifier.state().kids).not.toEqual([]);
    moved.monotonic += 1000;
    // The key that signs after the revocation was already published, so the verifier knows it.
    expect(await verdictOf(issuer.issue().token)).toBe("ok");
    issuer.state.jwksBody = undefined;
    expect(await verdictOf(token)).toBe("revoked_key");
  });

  test("that cannot be read: tokens under known keys are accepted, under unknown ones `unavailable`", async () => {
    const issuer = await startIssuer();
    const { verifier, verdictOf, moved, events } = follow(issuer);
    await verifier.ready;
    issuer.state.jwksStatus = 500;
    const { token } = issuer.issue();
    issuer.setRing(generateRing("ES256", Date.now()));
    moved.monotonic += 1000;
    expect(await verdictOf(issuer.issue().token)).toBe("unavailable");
    expect(await verdictOf(token)).toBe("ok");
    expect(events.filter(({ event }) => event === "keys_unreadable")).toHaveLength(1);
    moved.monotonic += 3_600_000;
    await untilTrue(() => verifier.stalenessMs() < LIMIT_MS);
    expect(await verdictOf(token)).toBe("unavailable");
    expect(verifier.state().kids).toEqual([]);
  });

  test("that cannot be read are reported with a reason, also in JSON", async () => {
    const issuer = await startIssuer();
    const cause = new Error("connect ECONNREFUSED 127.0.0.1:1");
    const { verdictOf, events } = follow(issuer, {
      fetch: () => Promise.reject(new TypeError("fetch failed", { cause })),
    });
    expect(await verdictOf(issuer.issue().token)).toBe("unavailable");
    const logged = JSON.parse(JSON.stringify(events.find(({ event }) => event === "keys_unreadable")));
    expect(logged).toEqual({ event: "keys_unreadable", error: "fetch failed: connect ECONNREFUSED 127.0.0.1:1" });
  });

  test("that cannot be read from the start are reported once, and again after they could be", async () => {
    const issuer = await startIssuer();
    issuer.state.jwksStatus = 500;
    const { verifier, verdictOf, moved, events } = follow(issuer);
    const { token } = issuer.issue();
    for (let read = 0; read < 3; read += 1, moved.monotonic += 1000) expect(await verdictOf(token)).toBe("unavailable");
    issuer.state.jwksStatus = 200;
    expect(await verdictOf(token)).toBe("ok");
    await verifier.ready;
    issuer.state.jwksStatus = 500;
    issuer.setRing(generateRing("ES256", Date.now()));
    moved.monotonic += 1000;
    expect(await verdictOf(issuer.issue().token)).toBe("unavailable");
    const ofKeys = events.map(({ event }) => event).filter((event) => event.startsWith("keys_"));
    expect(ofKeys).toEqual(["keys_unreadable", "keys_read", "keys_unreadable"]);
  });
});
