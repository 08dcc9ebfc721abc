/** Status lists over the real revocation feed of several instances. */
import { inflateSync } from "node:zlib";
import { createLocalJWKSet, jwtVerify } from "jose";
import { describe, expect, onTestFinished, test } from "vitest";
import type { SessionId } from "../../../../src/service/session/model.ts";
import { type StoreMs, storeMs, wallMs } from "../../../../src/service/session/time.ts";
import { placeOf } from "../../../../src/service/signals/status-list/place.ts";
import { RevokedIndices } from "../../../../src/service/signals/status-list/revoked-indices.ts";
import { type SignedList, StatusLists } from "../../../../src/service/signals/status-list/status-lists.ts";
import { createClaimsSigner } from "../../../../src/service/tokens/signed-claims.ts";
import { createFeedWorld, MARKER_LIFE, random } from "../../../support/session/feed.ts";
import { ISSUER, someKeys } from "../../../support/tokens.ts";
import { until } from "../../../support/until.ts";

const TTL = 10_000;

/** Creates instances that share a store and a signing key. */
function createWorld() {
  const world = createFeedWorld();
  const leaving = new AbortController();
  onTestFinished(async () => {
    leaving.abort();
    await world.close();
  });
  const keys = someKeys();
  const wall = { now: 1_700_000_001_000 };
  const steady = { now: 0 };
  const clock = () => steady.now;
  const instance = () => {
    const feed = world.follow();
    const revoked = new RevokedIndices({ feed, wallClock: () => wallMs(wall.now), clock, signal: leaving.signal });
    const lists = new StatusLists({ issuer: ISSUER, ttlMs: TTL, signClaims: createClaimsSigner(keys), revoked, clock });
    return { feed, revoked, lists };
  };
  const claimsOf = async ({ token }: SignedList) => {
    const verified = await jwtVerify(token, createLocalJWKSet({ keys: [...keys.current.jwks.keys] }), {
      typ: "statuslist+jwt",
      currentDate: new Date(wall.now),
    });
    return verified.payload as typeof verified.payload & { ttl: number; status_list: { bits: number; lst: string } };
  };
  return { world, wall, steady, instance, claimsOf };
}

type Lists = ReturnType<ReturnType<typeof createWorld>["instance"]>["lists"];

function statusOf(lists: Lists, sid: SessionId, createdAt: StoreMs) {
  const { status } = JSON.parse(`{"a":0${lists.memberOf({ sid, createdAt })}}`);
  const { idx, uri } = status.status_list as { readonly idx: number; readonly uri: string };
  return { idx, uri, name: uri.slice(`${ISSUER}/v1/status-lists/`.length) };
}

const served = (lists: Lists, name: string) =>
  until(async () => {
    const list = lists.get(name);
    if (typeof list !== "object") throw new Error(`${list}`);
    return list;
  });

function bitOf(lst: string, index: number): number {
  const bytes = inflateSync(Buffer.from(lst, "base64url"));
  return ((bytes[index >> 3] ?? 0) >> (index & 7)) & 1;
}

/** Waits until a session is revoked in the list of an instance. */
async function revokedIn({ claimsOf, steady }: ReturnType<typeof createWorld>, lists: Lists, sid: SessionId) {
  const { list, index } = placeOf(sid);
  await until(async () => {
    steady.now += 1_000;
    const { status_list } = await claimsOf(await served(lists, list));
    expect(bitOf(status_list.lst, index)).toBe(1);
  });
}

describe("a status list", () => {
  test("has the claims of the draft, and the bit of a session that has ended", async () => {
    const all = createWorld();
    const { lists } = all.instance();
    const sid = random.sessionId("alice");
    const { list, index } = placeOf(sid);
    const before = await all.claimsOf(await served(lists, list));
    expect(before).toEqual({
      iss: ISSUER,
      sub: `${ISSUER}/v1/status-lists/${list}`,
      iat: 1_700_000_000,
      exp: 1_700_000_030,
      ttl: 10,
      status_list: { bits: 1, lst: expect.any(String) },
    });
    expect(bitOf(before.status_list.lst, index)).toBe(0);
    await all.world.end(sid);
    await revokedIn(all, lists, sid);
    const { status_list } = await all.claimsOf(await served(lists, list));
    expect(inflateSync(Buffer.from(status_list.lst, "base64url")).reduce((sum, byte) => sum + byte, 0)).toBe(
      1 << (index & 7),
    );
  });

  test("is the same of every instance, with one entity tag until it changes or its time is over", async () => {
    const all = createWorld();
    const [one, other] = [all.instance(), all.instance()];
    const sid = await all.world.end();
    const { list } = placeOf(sid);
    for (const { lists } of [one, other]) await revokedIn(all, lists, sid);
    const { etag } = await served(one.lists, list);
    expect((await served(other.lists, list)).etag).toBe(etag);
    all.wall.now += TTL;
    await until(async () => {
      const next = await served(other.lists, list);
      expect(next.etag).not.toBe(etag);
      expect((await all.claimsOf(next)).iat).toBe(1_700_000_010);
    });
  });

  test("names the last logout of everyone only for sessions that are created after it", () => {
    const revoked = {
      revokedUntil: storeMs(5_000),
      knownAt: () => wallMs(0),
      of: () => ({ version: 0, indices: new Map() }),
    };
    const signClaims = createClaimsSigner(someKeys());
    const lists = new StatusLists({ issuer: ISSUER, ttlMs: TTL, signClaims, revoked, clock: () => 0 });
    const sid = random.sessionId("alice");
    const uriAt = (createdAt: number) =>
      JSON.parse(`{${lists.memberOf({ sid, createdAt: storeMs(createdAt) }).slice(1)}}`).status.status_list.uri;
    const uri = `${ISSUER}/v1/status-lists/${placeOf(sid).list}`;
    expect(uriAt(5_000)).toBe(uri);
    expect(uriAt(5_001)).toBe(`${uri}.${(5_000).toString(36)}`);
  });

  test("without a suffix is for sessions that every logout of everyone ended", () => {
    const revoked = {
      revokedUntil: storeMs(1),
      knownAt: () => wallMs(0),
      of: () => ({ version: 0, indices: new Map() }),
    };
    const signClaims = createClaimsSigner(someKeys());
    const lists = new StatusLists({ issuer: ISSUER, ttlMs: TTL, signClaims, revoked, clock: () => 0 });
    const { list, index } = placeOf(random.sessionId("alice"));
    const bitIn = (name: string) => {
      const { token } = lists.get(name) as SignedList;
      const claims = JSON.parse(Buffer.from(token.split(".")[1] ?? "", "base64url").toString());
      return bitOf(claims.status_list.lst, index);
    };
    expect([bitIn(list), bitIn(`${list}.1`)]).toEqual([1, 0]);
  });

  test("is made anew once a second at the most, with whichever suffix it is asked for", () => {
    let now = 0;
    const indices = new Map([[7, storeMs(1)]]);
    const revoked = {
      revokedUntil: undefined,
      knownAt: () => wallMs(1_700_000_000_000),
      of: () => ({ version: indices.size, indices }),
    };
    const signClaims = createClaimsSigner(someKeys());
    const lists = new StatusLists({ issuer: ISSUER, ttlMs: TTL, signClaims, revoked, clock: () => now });
    const bits = () =>
      ["abcdefgh", "abcdefgh.1", "abcdefgh.2"].map((name) => {
        const { token } = lists.get(name) as SignedList;
        const claims = JSON.parse(Buffer.from(token.split(".")[1] ?? "", "base64url").toString());
        return bitOf(claims.status_list.lst, 8);
      });
    expect(lists.get("abcdefgh")).toBe(lists.get("abcdefgh"));
    indices.set(8, storeMs(1));
    expect(bits()).toEqual([0, 0, 0]);
    now += 1_000;
    expect(bits()).toEqual([1, 1, 1]);
  });

  test("forgets a session when its access tokens have expired", async () => {
    const all = createWorld();
    const { lists, revoked } = all.instance();
    const sid = await all.world.end();
    await revokedIn(all, lists, sid);
    all.world.advance(MARKER_LIFE + 1);
    all.steady.now += 10_000;
    await until(async () => {
      all.steady.now += 1_000;
      expect(revoked.of(placeOf(sid).list).indices.size).toBe(0);
    });
  });

  test("is not served before revocations are known, nor when they have not been read for long", async () => {
    const all = createWorld();
    all.world.down = true;
    const { lists } = all.instance();
    expect(lists.get("abcdefgh")).toBe("unavailable");
    all.world.down = false;
    await served(lists, "abcdefgh");
    all.world.down = true;
    await until(async () => {
      all.steady.now += 5_001;
      expect(lists.get("abcdefgh")).toBe("unavailable");
    });
  });

  test.each(["", "short", "abcdefgh.", "abcdefgh.0", "abcdefgh.A", "abcdefgh.1234567890a", "abcdefgh/x"])(
    "does not exist under the name %j",
    (name) => expect(createWorld().instance().lists.get(name)).toBeUndefined(),
  );
});

test("the end of all sessions revokes those before it, and none that is created after it", async () => {
  const all = createWorld();
  const { lists, revoked } = all.instance();
  await until(async () => expect(revoked.revokedUntil).toBe(0));
  const [before, after] = [random.sessionId("alice"), random.sessionId("alice")];
  const old = statusOf(lists, before, storeMs(all.world.clock()));
  expect(old.name).toBe(placeOf(before).list);
  const endedUntil = await all.world.revokeAll();
  await until(async () => expect(revoked.revokedUntil).toBe(endedUntil));
  const status = statusOf(lists, after, storeMs(endedUntil + 1));
  const bits = async ({ name, idx, uri }: typeof status) => {
    const { sub, status_list } = await all.claimsOf(await served(lists, name));
    expect(sub).toBe(uri);
    return bitOf(status_list.lst, idx);
  };
  all.steady.now += 1_000;
  await until(async () => expect(await bits(old)).toBe(1));
  expect(await bits(status)).toBe(0);
  // A second call of `revokeAll` also revokes the sessions that were created after the first one.
  all.world.advance(60_000);
  const next = await all.world.revokeAll();
  await until(async () => expect(revoked.revokedUntil).toBe(next));
  all.steady.now += 1_000;
  expect([await bits(old), await bits(status)]).toEqual([1, 1]);
});

test("a token that is signed before the feed has been read has a list that every later end of all sessions revokes", async () => {
  const all = createWorld();
  const createdAt = storeMs(all.world.clock());
  all.world.down = true;
  const { lists, revoked } = all.instance();
  const { name, idx } = statusOf(lists, random.sessionId("alice"), createdAt);
  expect(name).toMatch(/\./);
  all.world.down = false;
  expect(bitOf((await all.claimsOf(await served(lists, name))).status_list.lst, idx)).toBe(0);
  const endedUntil = await all.world.revokeAll();
  await until(async () => expect(revoked.revokedUntil).toBe(endedUntil));
  all.steady.now += 1_000;
  expect(bitOf((await all.claimsOf(await served(lists, name))).status_list.lst, idx)).toBe(1);
});
