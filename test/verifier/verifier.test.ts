import { Code } from "@connectrpc/connect";
import { describe, expect, it } from "vitest";
import { generateMacKey, generateRing, generateSigningKey } from "../../src/tokens/generate-key.ts";
import type { Ring, RingKey } from "../../src/tokens/ring.ts";
import { revoke, rotate } from "../../src/tokens/ring-steps.ts";
import { createVerifier } from "../../src/verifier/index.ts";
import { ADMIN_TOKEN, AUDIENCE, eventually, follow, ISSUER, startIssuer } from "./support.ts";

const LIMIT = 5000; // the default of maxStaleness, ms

describe("revocation", () => {
  it("is seen by the next verification, of remembered and of new tokens", async () => {
    const issuer = await startIssuer();
    const { verifier, says } = follow(issuer);
    await verifier.ready;
    const { sid, token } = issuer.token();
    const other = issuer.token({ sid });
    const bystander = issuer.token();
    expect(await says(token)).toBe("ok");
    issuer.revoke(sid);
    await eventually(async () => (await says(token)) === "revoked");
    expect(await says(other.token)).toBe("revoked");
    expect(await says(bystander.token)).toBe("ok");
  });

  it("of everybody refuses the tokens of sessions created by then, remembered and new ones, whenever they were issued", async () => {
    const issuer = await startIssuer();
    const { verifier, says } = follow(issuer, { policy: "refuse" });
    await verifier.ready;
    const until = Date.now();
    const known = issuer.token({ createdAt: until - 5000 });
    const [onTime, late] = [issuer.token({ createdAt: until }), issuer.token({ createdAt: until + 1 })];
    expect(await says(known.token)).toBe("ok");
    issuer.revokeAll(until);
    await eventually(async () => (await says(known.token)) === "revoked");
    expect(await says(onTime.token)).toBe("revoked");
    expect(await says(late.token)).toBe("ok");
    issuer.revokeAll(until - 10_000); // an older word takes back nothing
    issuer.revoke(late.sid);
    await eventually(async () => (await says(late.token)) === "revoked");
    expect(await says(known.token)).toBe("revoked");
  });

  it("of everybody goes by the time of issue where a token does not say when its session was created", async () => {
    const issuer = await startIssuer();
    const { verifier, says } = follow(issuer, { policy: "refuse" });
    await verifier.ready;
    const token = issuer.without("sct", issuer.token().token);
    expect(await says(token)).toBe("ok");
    issuer.revokeAll(Date.now() - 5000);
    const probe = issuer.token({ createdAt: 0 });
    await eventually(async () => (await says(probe.token)) === "revoked");
    expect(await says(token)).toBe("ok");
    issuer.revokeAll(Date.now());
    await eventually(async () => (await says(token)) === "revoked");
  });

  it("of before the verifier started is known when it is ready, however many batches that takes", async () => {
    const issuer = await startIssuer();
    const dead = Array.from({ length: 25 }, () => issuer.token());
    for (const { sid } of dead) issuer.revoke(sid);
    const { verifier, says } = follow(issuer, { policy: "refuse" });
    await verifier.ready;
    for (const { token } of dead) expect(await says(token)).toBe("revoked");
    expect(await says(issuer.token().token)).toBe("ok");
  });

  it("is not known before all is told, however much was", async () => {
    const issuer = await startIssuer();
    const dead = Array.from({ length: 5 }, () => issuer.token());
    for (const { sid } of dead) issuer.revoke(sid);
    issuer.state.batches = 2; // of two each, so that one is missing
    const { verifier, says } = follow(issuer, { policy: "refuse" });
    for (const { token } of dead.slice(0, 4)) await eventually(async () => (await says(token)) === "revoked");
    expect(verifier.staleness()).toBe(Number.POSITIVE_INFINITY);
    expect(await says(dead[4]?.token ?? "")).toBe("unavailable");
    issuer.state.batches = Number.POSITIVE_INFINITY;
    await verifier.ready;
    expect(await says(dead[4]?.token ?? "")).toBe("revoked");
  });

  it("calls with the admin token, and with the next one once it has been rotated", async () => {
    const issuer = await startIssuer();
    let adminToken = ADMIN_TOKEN;
    const { verifier, next } = follow(issuer, { adminToken: () => adminToken });
    await verifier.ready;
    expect([...issuer.seen.authorizations]).toEqual([`Bearer ${ADMIN_TOKEN}`]);
    adminToken = "another-admin-token-of-32-characters-or-more";
    const following = next("feed_following");
    issuer.cut();
    await following;
    expect(issuer.seen.authorizations.has(`Bearer ${adminToken}`)).toBe(true);
  });

  it("is forgotten when the last token of the session has expired, and no sooner", async () => {
    const issuer = await startIssuer();
    const { verifier, moved, says } = follow(issuer);
    await verifier.ready;
    const { sid, token } = issuer.token();
    issuer.revoke(sid, Date.now() + 300_000);
    await eventually(async () => (await says(token)) === "revoked");
    moved.monotonic += 60_000; // time for a sweep
    const { sid: another, token: anotherToken } = issuer.token();
    issuer.revoke(another);
    await eventually(async () => (await says(anotherToken)) === "revoked");
    expect(await says(token)).toBe("revoked");
    moved.wall += 299_999;
    expect(await says(token)).not.toBe("ok");
    moved.wall += 1_000_000;
    expect(await says(token)).toBe("expired");
  });
});

describe("a feed that is cut", () => {
  it("is resumed where it was, and what happened meanwhile is seen", async () => {
    const issuer = await startIssuer();
    const { verifier, says, next } = follow(issuer);
    await verifier.ready;
    const tokens = Array.from({ length: 12 }, () => issuer.token());
    for (const { sid, token } of tokens) {
      const following = next("feed_following");
      issuer.cut();
      issuer.revoke(sid);
      await following;
      expect(await says(token)).toBe("revoked");
    }
    const resumed = issuer.seen.cursors.slice(1);
    expect(resumed).toHaveLength(12);
    expect(resumed.every((cursor) => cursor !== "")).toBe(true);
  });

  it("starts again from a snapshot when its cursor is not understood any more", async () => {
    const issuer = await startIssuer();
    const before = issuer.token();
    issuer.revoke(before.sid);
    const { verifier, says, next } = follow(issuer);
    await verifier.ready;
    issuer.state.cursorsAreUnderstood = false;
    const following = next("feed_following");
    issuer.cut();
    const { sid, token } = issuer.token();
    issuer.revoke(sid);
    await following;
    expect(await says(token)).toBe("revoked");
    expect(await says(before.token)).toBe("revoked");
    expect(issuer.seen.cursors.at(-1)).toBe("");
  });

  it("without a word is cut and asked for anew", async () => {
    const issuer = await startIssuer();
    const { verifier, next } = follow(issuer);
    await verifier.ready;
    const lost = next("feed_lost");
    issuer.state.beating = false; // as when a connection died and nobody said so
    expect(await lost).toMatchObject({ error: { message: expect.stringContaining("silent") } });
    const following = next("feed_following");
    issuer.state.beating = true;
    await following;
    expect(issuer.seen.cursors).toEqual(["", "0"]);
  });

  it("is told once, and once more when it is back", async () => {
    const issuer = await startIssuer();
    const { verifier, events, next } = follow(issuer);
    await verifier.ready;
    issuer.state.answering = false;
    const lost = next("feed_lost");
    issuer.cut();
    await lost;
    const asked = issuer.seen.cursors.length;
    await eventually(() => issuer.seen.cursors.length >= asked + 3);
    const following = next("feed_following");
    issuer.state.answering = true;
    await following;
    const told = events.map(({ event }) => event).filter((event) => event.startsWith("feed"));
    expect(told).toEqual(["feed_following", "feed_lost", "feed_following"]);
  });
});

describe("knowledge that is older than the limit", () => {
  async function outdated(policy: "introspect" | "refuse") {
    const issuer = await startIssuer();
    const following = follow(issuer, { policy });
    await following.verifier.ready;
    const known = issuer.token();
    expect(await following.says(known.token)).toBe("ok");
    issuer.state.beating = false; // the store is out: the service has nothing to tell
    await eventually(() => following.verifier.staleness() > 40);
    following.moved.monotonic += LIMIT;
    expect(following.verifier.staleness()).toBeGreaterThan(LIMIT);
    return { issuer, known, ...following };
  }

  it("is never acted upon: with the policy to refuse, nothing is known", async () => {
    const { issuer, known, says } = await outdated("refuse");
    expect(await says(known.token)).toBe("unavailable");
    expect(await says(issuer.token().token)).toBe("unavailable");
    expect(issuer.seen.introspections).toEqual([]);
  });

  it("is never acted upon: with the policy to introspect, the service is asked each time", async () => {
    const { issuer, known, says } = await outdated("introspect");
    expect(await says(known.token)).toBe("ok");
    issuer.revoke(known.sid);
    expect(await says(known.token)).toBe("revoked");
    const fresh = issuer.token();
    expect(await says(fresh.token)).toBe("ok");
    expect(issuer.seen.introspections).toEqual([known.token, known.token, fresh.token]);
  });

  it("is asked about once for all who present one token at a time", async () => {
    const { issuer, known, says } = await outdated("introspect");
    const fresh = issuer.token();
    const verdicts = await Promise.all([...Array(200).fill(known.token), fresh.token].map(says));
    expect(new Set(verdicts)).toEqual(new Set(["ok"]));
    expect(issuer.seen.introspections.toSorted()).toEqual([known.token, fresh.token].toSorted());
    expect(await says(known.token)).toBe("ok");
    expect(issuer.seen.introspections).toHaveLength(3);
  });

  it("is asked about again while a question is under way that is too old", async () => {
    const { issuer, known, says, moved } = await outdated("introspect");
    const early = says(known.token);
    moved.monotonic += LIMIT + 1;
    expect(await Promise.all([early, says(known.token)])).toEqual(["ok", "ok"]);
    expect(issuer.seen.introspections).toEqual([known.token, known.token]);
  });

  it("and nobody to ask: it is not known", async () => {
    const { issuer, known, says } = await outdated("introspect");
    issuer.state.answering = false;
    expect(await says(known.token)).toBe("unavailable");
    issuer.cut();
    expect(await says(known.token)).toBe("unavailable");
  });

  it("still refuses what is known to be bad, and asks nobody about it", async () => {
    const { issuer, says, moved } = await outdated("introspect");
    const expired = issuer.token({}, 10_000).token;
    moved.wall += 11_000;
    expect(await says(expired)).toBe("expired");
    expect(await says(`${expired.slice(0, -4)}AAAA`)).toBe("forged");
    expect(issuer.seen.introspections).toEqual([]);
  });

  it("becomes good again when the feed is heard", async () => {
    const { issuer, known, says } = await outdated("refuse");
    issuer.state.beating = true;
    await eventually(async () => (await says(known.token)) === "ok");
  });

  it("is what a verifier begins with", async () => {
    const issuer = await startIssuer();
    issuer.state.answering = false;
    const { verifier, says } = follow(issuer, { policy: "refuse" });
    expect(verifier.staleness()).toBe(Number.POSITIVE_INFINITY);
    expect(await says(issuer.token().token)).toBe("unavailable");
    issuer.state.answering = true;
    await verifier.ready;
    expect(verifier.staleness()).toBeLessThan(LIMIT);
    expect(await says(issuer.token().token)).toBe("ok");
  });

  it("is what a verifier without a feed declares", async () => {
    const issuer = await startIssuer();
    const verifier = createVerifier({ jwksUrl: issuer.jwksUrl, issuer: ISSUER, audience: AUDIENCE });
    expect(verifier.staleness()).toBe(Number.POSITIVE_INFINITY);
    expect(await verifier.verify(issuer.token().token)).toMatchObject({ ok: true });
    expect(issuer.seen.cursors).toEqual([]);
    verifier.close();
  });

  it("is all that a closed verifier has", async () => {
    const issuer = await startIssuer();
    const { verifier, says, moved } = follow(issuer);
    await verifier.ready;
    const { token } = issuer.token();
    expect(await says(token)).toBe("ok");
    verifier.close();
    moved.monotonic += LIMIT;
    expect(await says(token)).toBe("unavailable");
  });
});

/** A key that would do, under a name. */
function publicKey(kid: string) {
  const { d: _, ...members } = generateSigningKey("ES256", 0).jwk ?? {};
  return { ...members, kid };
}

describe("keys", () => {
  const times = { jwksMaxAge: 0, accessTokenTtl: 300_000, sessionIdleTtl: 86_400_000, pickUp: 0 };
  const generate = (kind: "signing" | "mac") =>
    kind === "mac" ? generateMacKey(Date.now()) : generateSigningKey("ES256", Date.now());
  const rotated = (ring: Ring): Ring => rotate(ring, ["signing"], generate, Date.now(), times, true);
  const signingKid = (ring: Ring) => ring.signing.find((key) => key.state === "signing")?.kid ?? "";

  it("that rotate are never missed, and need no reading: each was published before it signed", async () => {
    const issuer = await startIssuer();
    const { verifier, says } = follow(issuer);
    await verifier.ready;
    const reads = issuer.seen.jwks;
    const before = issuer.token().token;
    issuer.turn(rotated(issuer.state.ring));
    expect(await says(issuer.token().token)).toBe("ok");
    expect(await says(before)).toBe("ok");
    expect(issuer.seen.jwks).toBe(reads);
  });

  it("that nobody knew before are read when their first token comes, and then no more often than the cooldown", async () => {
    const issuer = await startIssuer();
    const { verifier, says, moved } = follow(issuer);
    await verifier.ready;
    const reads = issuer.seen.jwks;
    issuer.turn(generateRing("EdDSA", Date.now()));
    moved.monotonic += 1000; // the cooldown since the first reading
    const { token } = issuer.token();
    expect(await Promise.all(Array.from({ length: 50 }, () => says(token)))).toEqual(Array(50).fill("ok"));
    expect(issuer.seen.jwks).toBe(reads + 1);
    issuer.turn(generateRing("ES256", Date.now()));
    expect(await says(issuer.token().token)).toBe("unknown_key");
    expect(issuer.seen.jwks).toBe(reads + 1);
    moved.monotonic += 1000;
    expect(await says(issuer.token().token)).toBe("ok");
  });

  it("that are withdrawn are forgotten with all that was verified under them", async () => {
    const issuer = await startIssuer();
    const { verifier, says, moved } = follow(issuer);
    await verifier.ready;
    const { token } = issuer.token();
    expect(await says(token)).toBe("ok");
    issuer.turn(generateRing("ES256", Date.now()));
    moved.monotonic += 1000;
    expect(await says(issuer.token().token)).toBe("ok"); // which made it read the keys
    expect(await says(token)).toBe("unknown_key");
  });

  it("are read again on the schedule that the issuer gives", async () => {
    const issuer = await startIssuer();
    issuer.state.jwksHeaders = { "cache-control": "public, max-age=1" };
    const { verifier, says } = follow(issuer);
    await verifier.ready;
    const { token } = issuer.token();
    const verdict = await verifier.verify(token);
    expect(verdict.ok).toBe(true);
    await eventually(() => issuer.seen.jwks === 3); // so that the second one has been taken
    expect(await verifier.verify(token)).toBe(verdict); // a key that is still there vouches on
    issuer.turn(generateRing("ES256", Date.now()));
    await eventually(async () => (await says(token)) === "unknown_key");
  });

  it("that are replaced under the same name do not vouch for older tokens", async () => {
    const issuer = await startIssuer();
    const { verifier, says, moved } = follow(issuer);
    await verifier.ready;
    const { token } = issuer.token();
    expect(await says(token)).toBe("ok");
    const other = generateRing("ES256", Date.now());
    const kid = signingKid(issuer.state.ring);
    issuer.turn({
      ...other,
      signing: other.signing.map((key): RingKey => (key.state === "signing" ? { ...key, kid } : key)),
    });
    moved.monotonic += 1000;
    await says(
      issuer
        .token({}, 1)
        .token.replace(/^[^.]+/, Buffer.from(`{"typ":"at+jwt","alg":"ES256","kid":"?"}`).toString("base64url")),
    );
    expect(await says(token)).toBe("forged");
    expect(await says(issuer.token().token)).toBe("ok");
  });

  it("revoked in an emergency are refused as soon as the feed tells, whatever the key set still says", async () => {
    const issuer = await startIssuer();
    const { verifier, says, moved } = follow(issuer);
    await verifier.ready;
    const { token } = issuer.token();
    const jwks = JSON.stringify(issuer.jwks());
    expect(await says(token)).toBe("ok");
    issuer.state.jwksBody = jwks;
    issuer.turn(revoke(issuer.state.ring, signingKid(issuer.state.ring), generate, Date.now()));
    await eventually(async () => (await says(token)) === "revoked_key");
    moved.monotonic += 1000;
    expect(await says(issuer.token().token)).toBe("ok"); // under the successor, which was published
    issuer.state.jwksBody = undefined;
    expect(await says(token)).toBe("revoked_key");
  });

  it("that cannot be read: tokens of known keys are served, of unknown ones it is not known", async () => {
    const issuer = await startIssuer();
    const { verifier, says, moved, events } = follow(issuer);
    await verifier.ready;
    issuer.state.jwksStatus = 500;
    const { token } = issuer.token();
    issuer.turn(generateRing("ES256", Date.now()));
    moved.monotonic += 1000;
    expect(await says(issuer.token().token)).toBe("unavailable");
    expect(await says(token)).toBe("ok");
    expect(events.filter(({ event }) => event === "keys_unreadable")).toHaveLength(1);
    moved.monotonic += 3_600_000;
    await eventually(() => verifier.staleness() < LIMIT);
    expect(await says(token)).toBe("unavailable");
  });

  it.each<[string, string]>([
    ["nothing", ""],
    ["a page", "<html>"],
    ["no list", '{"keys":{}}'],
    ["an empty list", '{"keys":[]}'],
    ["more than an issuer has", JSON.stringify({ keys: Array(101).fill(publicKey("k")) })],
    ["megabytes", JSON.stringify({ keys: [publicKey("k")], pad: "x".repeat(300_000) })],
    ["a symmetric key", '{"keys":[{"kty":"oct","kid":"k","alg":"HS256","k":"AAAA"}]}'],
    ["an RSA key", '{"keys":[{"kty":"RSA","kid":"k","alg":"RS256","n":"AQAB","e":"AQAB"}]}'],
    [
      "a key for encryption",
      JSON.stringify({ keys: [{ ...generateSigningKey("ES256", 0).jwk, kid: "k", use: "enc" }] }),
    ],
    ["a key without a name", JSON.stringify({ keys: [generateSigningKey("ES256", 0).jwk] })],
    ["a point off the curve", '{"keys":[{"kty":"EC","crv":"P-256","kid":"k","x":"AAAA","y":"AAAA"}]}'],
    [
      "an algorithm that is not its curve's",
      JSON.stringify({ keys: [{ ...generateSigningKey("ES256", 0).jwk, kid: "k", alg: "EdDSA" }] }),
    ],
  ])("in a key set that is %s are none", async (_, body) => {
    const issuer = await startIssuer();
    issuer.state.jwksBody = body;
    const { says, events } = follow(issuer);
    expect(await says(issuer.token().token)).toBe("unavailable");
    expect(events.map(({ event }) => event)).toContain("keys_unreadable");
  });

  it("are read no further than a key set may be long", async () => {
    const issuer = await startIssuer();
    let pulls = 0;
    const endless = async () =>
      new Response(
        new ReadableStream({
          pull(controller) {
            pulls += 1;
            if (pulls > 100) controller.close();
            else controller.enqueue(new Uint8Array(65_536).fill(0x20));
          },
        }),
      );
    const { says, events } = follow(issuer, { fetch: endless });
    expect(await says(issuer.token().token)).toBe("unavailable");
    expect(events).toContainEqual({ event: "keys_unreadable", error: new Error("the key set is too large") });
    expect(pulls).toBeLessThan(10);
  });

  it("are not fetched from where the key set redirects", async () => {
    const [issuer, evil] = [await startIssuer(), await startIssuer()];
    issuer.state.jwksStatus = 302;
    issuer.state.jwksHeaders = { location: evil.jwksUrl };
    const { says } = follow(issuer);
    expect(await says(evil.token().token)).toBe("unavailable");
    expect(evil.seen.jwks).toBe(0);
  });

  it.each([
    ["for something else", { key_ops: ["sign"] }, "unknown_key"],
    ["for nothing", { key_ops: [] }, "unknown_key"],
    ["for what is no list", { key_ops: "verify" }, "unknown_key"],
    ["for verifying", { key_ops: ["verify"] }, "ok"],
  ])("that declare to be %s are used so", async (_, declared, verdict) => {
    const issuer = await startIssuer();
    const [key, ...others] = issuer.jwks().keys;
    issuer.state.jwksBody = JSON.stringify({ keys: [{ ...key, ...declared }, ...others] });
    const { verifier, says } = follow(issuer);
    await verifier.ready;
    expect(await says(issuer.token().token)).toBe(verdict);
  });

  it("in one set with others that are not for us are found", async () => {
    const issuer = await startIssuer();
    const keys = [{ kty: "RSA", kid: "r", n: "AQAB", e: "AQAB" }, null, "key", ...issuer.jwks().keys];
    issuer.state.jwksBody = JSON.stringify({ keys });
    const { says } = follow(issuer);
    expect(await says(issuer.token().token)).toBe("ok");
  });
});

describe("what is remembered", () => {
  it("expires with its token", async () => {
    const issuer = await startIssuer();
    const { verifier, says, moved } = follow(issuer);
    await verifier.ready;
    const { token } = issuer.token();
    expect(await says(token)).toBe("ok");
    moved.wall += 300_000;
    expect(await says(token)).toBe("expired");
  });

  it("is bounded, and what falls out is verified anew", async () => {
    const issuer = await startIssuer();
    const { verifier, says } = follow(issuer, { cacheSize: 4 });
    await verifier.ready;
    const tokens = Array.from({ length: 20 }, () => issuer.token().token);
    for (const token of [...tokens, ...tokens]) expect(await says(token)).toBe("ok");
  });

  it("answers every bearer of one token with one and the same verdict", async () => {
    const issuer = await startIssuer();
    const { verifier } = follow(issuer);
    await verifier.ready;
    const { token } = issuer.token();
    const first = await verifier.verify(token);
    expect(await verifier.verify(Buffer.from(token).toString())).toBe(first);
  });
});

describe("a verifier that is set up wrongly", () => {
  it("has a wrong admin token: it is not ready and says why, and goes on with the right one", async () => {
    const issuer = await startIssuer();
    let adminToken = "wrong";
    const { verifier, says, next } = follow(issuer, { adminToken: () => adminToken, policy: "refuse" });
    const following = next("feed_following");
    await expect(verifier.ready).rejects.toMatchObject({ code: Code.Unauthenticated });
    expect(await says(issuer.token().token)).toBe("unavailable");
    adminToken = ADMIN_TOKEN;
    await following;
    expect(await says(issuer.token().token)).toBe("ok");
  });

  it.each([
    ["has neither address", {}, /needs adminUrl or jwksUrl/],
    ["has no admin token", { adminUrl: "http://127.0.0.1:1" }, /needs adminToken/],
    [
      "has a policy and nobody to ask",
      { jwksUrl: "http://127.0.0.1:1", policy: "introspect" },
      /a policy needs adminUrl/,
    ],
    ["remembers without bounds", { jwksUrl: "http://127.0.0.1:1", cacheSize: Number.NaN }, /cacheSize must be/],
    ["remembers one token", { jwksUrl: "http://127.0.0.1:1", cacheSize: 1 }, /cacheSize must be/],
    ["never notices an old feed", { jwksUrl: "http://127.0.0.1:1", maxStaleness: Number.NaN }, /maxStaleness must be/],
    ["has no audience", { jwksUrl: "http://127.0.0.1:1", audience: [] }, /needs an audience/],
  ] as const)("%s", (_, options, fault) => {
    expect(() => createVerifier({ issuer: ISSUER, audience: AUDIENCE, ...options })).toThrow(fault);
  });
});

describe("a report", () => {
  it.each<[string, () => void]>([
    [
      "throws",
      () => {
        throw new Error("the log is full");
      },
    ],
    ["rejects", async () => Promise.reject(new Error("the log is full"))],
  ])("that %s changes nothing", async (_, report) => {
    const issuer = await startIssuer();
    const { verifier, says } = follow(issuer, { report });
    await verifier.ready;
    const { sid, token } = issuer.token();
    issuer.cut();
    issuer.revoke(sid);
    await eventually(async () => (await says(token)) === "revoked");
  });
});
