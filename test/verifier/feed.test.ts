/** Verdicts depend on the revocations of the feed, and a feed whose connection is cut is resumed. */
import { describe, expect, test } from "vitest";
import { storeMs } from "../../src/service/session/time.ts";
import { untilTrue } from "../support/until.ts";
import { follow } from "../support/verifier/follow.ts";
import { ADMIN_TOKEN, startIssuer } from "../support/verifier/issuer.ts";

describe("revocation", () => {
  test("reaches the next verification, of cached and of new tokens", async () => {
    const issuer = await startIssuer();
    const { verifier, verdictOf } = follow(issuer);
    await verifier.ready;
    const { sid, token } = issuer.issue();
    const other = issuer.issue({ sid });
    const bystander = issuer.issue();
    expect(await verdictOf(token)).toBe("ok");
    issuer.revoke(sid);
    await untilTrue(async () => (await verdictOf(token)) === "revoked");
    expect(await verdictOf(other.token)).toBe("revoked");
    expect(await verdictOf(bystander.token)).toBe("ok");
  });

  test("of all sessions rejects tokens by the creation time of their session, cached and new ones, whenever they were issued", async () => {
    const issuer = await startIssuer();
    const { verifier, verdictOf } = follow(issuer, { policy: "refuse" });
    await verifier.ready;
    const until = Date.now();
    const known = issuer.issue({ createdAt: storeMs(until - 5000) });
    const [onTime, late] = [
      issuer.issue({ createdAt: storeMs(until) }),
      issuer.issue({ createdAt: storeMs(until + 1) }),
    ];
    expect(await verdictOf(known.token)).toBe("ok");
    issuer.revokeAll(until);
    await untilTrue(async () => (await verdictOf(known.token)) === "revoked");
    expect(await verdictOf(onTime.token)).toBe("revoked");
    expect(await verdictOf(late.token)).toBe("ok");
    issuer.revokeAll(until - 10_000); // A revocation of sessions before an earlier time does not undo that of a later time.
    issuer.revoke(late.sid);
    await untilTrue(async () => (await verdictOf(late.token)) === "revoked");
    expect(await verdictOf(known.token)).toBe("revoked");
  });

  test("of all sessions goes by the time of issue for a token without `sct`", async () => {
    const issuer = await startIssuer();
    const { verifier, verdictOf } = follow(issuer, { policy: "refuse" });
    await verifier.ready;
    const token = issuer.changeClaims({ sct: undefined }, issuer.issue().token);
    expect(await verdictOf(token)).toBe("ok");
    issuer.revokeAll(Date.now() - 5000);
    const probe = issuer.issue({ createdAt: storeMs(0) });
    await untilTrue(async () => (await verdictOf(probe.token)) === "revoked");
    expect(await verdictOf(token)).toBe("ok");
    issuer.revokeAll(Date.now());
    await untilTrue(async () => (await verdictOf(token)) === "revoked");
  });

  test("from before the start is known when the verifier is ready, however many batches it takes", async () => {
    const issuer = await startIssuer();
    const dead = Array.from({ length: 25 }, () => issuer.issue());
    for (const { sid } of dead) issuer.revoke(sid);
    const { verifier, verdictOf } = follow(issuer, { policy: "refuse" });
    await verifier.ready;
    for (const { token } of dead) expect(await verdictOf(token)).toBe("revoked");
    expect(await verdictOf(issuer.issue().token)).toBe("ok");
  });

  test("is not complete before the last batch, however many have arrived", async () => {
    const issuer = await startIssuer();
    const dead = Array.from({ length: 5 }, () => issuer.issue());
    for (const { sid } of dead) issuer.revoke(sid);
    issuer.state.maxBatches = 2; // The issuer has sent two batches of two entries, so the fifth entry is missing.
    const { verifier, verdictOf } = follow(issuer, { policy: "refuse" });
    for (const { token } of dead.slice(0, 4)) await untilTrue(async () => (await verdictOf(token)) === "revoked");
    expect(verifier.stalenessMs()).toBe(Number.POSITIVE_INFINITY);
    expect(await verdictOf(dead[4]?.token ?? "")).toBe("unavailable");
    issuer.state.maxBatches = Number.POSITIVE_INFINITY;
    await verifier.ready;
    expect(await verdictOf(dead[4]?.token ?? "")).toBe("revoked");
  });

  test("is requested with the admin token, and with the next one after a rotation", async () => {
    const issuer = await startIssuer();
    let adminToken = ADMIN_TOKEN;
    const { verifier, next } = follow(issuer, { adminToken: () => adminToken });
    await verifier.ready;
    expect([...issuer.seen.authorizations]).toEqual([`Bearer ${ADMIN_TOKEN}`]);
    adminToken = "another-admin-token-of-32-characters-or-more";
    const following = next("feed_following");
    issuer.closeConnections();
    await following;
    expect(issuer.seen.authorizations.has(`Bearer ${adminToken}`)).toBe(true);
  });

  test("is kept until the last token of the session has expired, and not longer", async () => {
    const issuer = await startIssuer();
    const { verifier, moved, verdictOf } = follow(issuer);
    await verifier.ready;
    const { sid, token } = issuer.issue();
    issuer.revoke(sid, Date.now() + 300_000);
    await untilTrue(async () => (await verdictOf(token)) === "revoked");
    moved.monotonic += 60_000; // The next batch removes expired entries, because a minute has passed.
    const { sid: another, token: anotherToken } = issuer.issue();
    issuer.revoke(another);
    await untilTrue(async () => (await verdictOf(anotherToken)) === "revoked");
    expect(await verdictOf(token)).toBe("revoked");
    moved.wall += 299_999;
    expect(await verdictOf(token)).not.toBe("ok");
    moved.wall += 1_000_000;
    expect(await verdictOf(token)).toBe("expired");
  });
});

describe("a feed that is cut", () => {
  test("is resumed at its cursor, and misses nothing that happened in between", async () => {
    const issuer = await startIssuer();
    const { verifier, verdictOf, next } = follow(issuer);
    await verifier.ready;
    const tokens = Array.from({ length: 12 }, () => issuer.issue());
    for (const { sid, token } of tokens) {
      const following = next("feed_following");
      issuer.closeConnections();
      issuer.revoke(sid);
      await following;
      expect(await verdictOf(token)).toBe("revoked");
    }
    const resumed = issuer.seen.cursors.slice(1);
    expect(resumed).toHaveLength(12);
    expect(resumed.every((cursor) => cursor !== "")).toBe(true);
  });

  test("starts again from a snapshot when its cursor is rejected", async () => {
    const issuer = await startIssuer();
    const before = issuer.issue();
    issuer.revoke(before.sid);
    const { verifier, verdictOf, next } = follow(issuer);
    await verifier.ready;
    issuer.state.acceptsCursors = false;
    const following = next("feed_following");
    issuer.closeConnections();
    const { sid, token } = issuer.issue();
    issuer.revoke(sid);
    await following;
    expect(await verdictOf(token)).toBe("revoked");
    expect(await verdictOf(before.token)).toBe("revoked");
    expect(issuer.seen.cursors.at(-1)).toBe("");
  });

  test("that falls silent is cut and requested again", async () => {
    const issuer = await startIssuer();
    const { verifier, next } = follow(issuer);
    await verifier.ready;
    const lost = next("feed_lost");
    issuer.state.sendsHeartbeats = false; // The connection stays open without heartbeats, as if it had died unnoticed.
    expect(await lost).toMatchObject({ error: { message: expect.stringContaining("silent") } });
    const following = next("feed_following");
    issuer.state.sendsHeartbeats = true;
    await following;
    expect(issuer.seen.cursors).toEqual(["", "0"]);
  });

  test("is reported once, and once more when it is back", async () => {
    const issuer = await startIssuer();
    const { verifier, events, next } = follow(issuer);
    await verifier.ready;
    issuer.state.isUp = false;
    const lost = next("feed_lost");
    issuer.closeConnections();
    await lost;
    const calls = issuer.seen.cursors.length;
    await untilTrue(() => issuer.seen.cursors.length >= calls + 3);
    const following = next("feed_following");
    issuer.state.isUp = true;
    await following;
    const names = events.map(({ event }) => event).filter((event) => event.startsWith("feed"));
    expect(names).toEqual(["feed_following", "feed_lost", "feed_following"]);
  });
});
