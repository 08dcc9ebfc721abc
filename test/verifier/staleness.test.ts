/** A verifier never accepts a token on the basis of feed data that is older than the limit. */
import { describe, expect, test } from "vitest";
import { createVerifier } from "../../src/verifier/index.ts";
import { untilTrue } from "../support/until.ts";
import { follow } from "../support/verifier/follow.ts";
import { AUDIENCE, ISSUER, startIssuer } from "../support/verifier/issuer.ts";

/** The default of `maxStalenessMs`. */
const LIMIT_MS = 5000;

describe("a feed that is older than the limit", () => {
  async function stale(policy: "introspect" | "refuse") {
    const issuer = await startIssuer();
    const following = follow(issuer, { policy });
    await following.verifier.ready;
    const known = issuer.issue();
    expect(await following.verdictOf(known.token)).toBe("ok");
    issuer.state.sendsHeartbeats = false; // No heartbeats arrive, as when the store is down.
    await untilTrue(() => issuer.seen.pauses > 1 && following.verifier.stalenessMs() > 40);
    following.moved.monotonic += LIMIT_MS;
    expect(following.verifier.stalenessMs()).toBeGreaterThan(LIMIT_MS);
    return { issuer, known, ...following };
  }

  test("is never relied on: with the policy `refuse` every verdict is `unavailable`", async () => {
    const { issuer, known, verdictOf } = await stale("refuse");
    expect(await verdictOf(known.token)).toBe("unavailable");
    expect(await verdictOf(issuer.issue().token)).toBe("unavailable");
    expect(issuer.seen.introspections).toEqual([]);
  });

  test("is never relied on: with the policy `introspect` the service is called each time", async () => {
    const { issuer, known, verdictOf } = await stale("introspect");
    expect(await verdictOf(known.token)).toBe("ok");
    issuer.revoke(known.sid);
    expect(await verdictOf(known.token)).toBe("revoked");
    const fresh = issuer.issue();
    expect(await verdictOf(fresh.token)).toBe("ok");
    expect(issuer.seen.introspections).toEqual([known.token, known.token, fresh.token]);
  });

  test("causes one call at a time per token, shared by all requests with it", async () => {
    const { issuer, known, verdictOf } = await stale("introspect");
    const fresh = issuer.issue();
    const verdicts = await Promise.all([...Array(200).fill(known.token), fresh.token].map(verdictOf));
    expect(new Set(verdicts)).toEqual(new Set(["ok"]));
    expect(issuer.seen.introspections.toSorted()).toEqual([known.token, fresh.token].toSorted());
    expect(await verdictOf(known.token)).toBe("ok");
    expect(issuer.seen.introspections).toHaveLength(3);
  });

  test("causes another call while the one under way is too old", async () => {
    const { issuer, known, verdictOf, moved } = await stale("introspect");
    expect(await verdictOf(known.token)).toBe("ok"); // This verification makes the verifier notice that the feed is stale.
    const early = verdictOf(known.token);
    moved.monotonic += LIMIT_MS + 1;
    expect(await Promise.all([early, verdictOf(known.token)])).toEqual(["ok", "ok"]);
    expect(issuer.seen.introspections).toEqual([known.token, known.token, known.token]);
  });

  test("leaves the verdict `unavailable` while the service is down", async () => {
    const { issuer, known, verdictOf } = await stale("introspect");
    issuer.state.isUp = false;
    expect(await verdictOf(known.token)).toBe("unavailable");
    issuer.closeConnections();
    expect(await verdictOf(known.token)).toBe("unavailable");
  });

  test("still rejects what is known to be invalid, without a call", async () => {
    const { issuer, verdictOf, moved } = await stale("introspect");
    const expired = issuer.issue({}, 10_000).token;
    moved.wall += 11_000;
    expect(await verdictOf(expired)).toBe("expired");
    expect(await verdictOf(`${expired.slice(0, -4)}AAAA`)).toBe("forged");
    expect(issuer.seen.introspections).toEqual([]);
  });

  test("is fresh again with the next batch", async () => {
    const { issuer, known, verdictOf } = await stale("refuse");
    issuer.state.sendsHeartbeats = true;
    await untilTrue(async () => (await verdictOf(known.token)) === "ok");
  });

  test("is the state before the first batch", async () => {
    const issuer = await startIssuer();
    issuer.state.isUp = false;
    const { verifier, verdictOf } = follow(issuer, { policy: "refuse" });
    expect(verifier.stalenessMs()).toBe(Number.POSITIVE_INFINITY);
    expect(await verdictOf(issuer.issue().token)).toBe("unavailable");
    issuer.state.isUp = true;
    await verifier.ready;
    expect(verifier.stalenessMs()).toBeLessThan(LIMIT_MS);
    expect(await verdictOf(issuer.issue().token)).toBe("ok");
  });

  test("is what a verifier without a feed reports", async () => {
    const issuer = await startIssuer();
    const verifier = createVerifier({ jwksUrl: issuer.jwksUrl, issuer: ISSUER, audience: AUDIENCE });
    expect(verifier.stalenessMs()).toBe(Number.POSITIVE_INFINITY);
    expect(await verifier.verify(issuer.issue().token)).toMatchObject({ ok: true });
    expect(issuer.seen.cursors).toEqual([]);
    verifier.close();
  });

  test("is what a closed verifier ends with", async () => {
    const issuer = await startIssuer();
    const { verifier, verdictOf, moved } = follow(issuer);
    await verifier.ready;
    const { token } = issuer.issue();
    expect(await verdictOf(token)).toBe("ok");
    verifier.close();
    moved.monotonic += LIMIT_MS;
    expect(await verdictOf(token)).toBe("unavailable");
  });
});
