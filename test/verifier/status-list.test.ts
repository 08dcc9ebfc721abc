/** A verifier that uses only status lists, on Node and by WebCrypto. */
import { deflateSync } from "node:zlib";
import { createConnectTransport } from "@connectrpc/connect-node";
import { describe, expect, onTestFinished, test } from "vitest";
import { encodeList, setBits } from "../../src/service/signals/status-list/encode.ts";
import { generateRing } from "../../src/service/tokens/generate-key.ts";
import { readyKeys } from "../../src/service/tokens/keys.ts";
import type { Ring } from "../../src/service/tokens/ring.ts";
import { createClaimsSigner } from "../../src/service/tokens/signed-claims.ts";
import { createVerifier, type VerifierEvent, type VerifierOptions } from "../../src/verifier/index.ts";
import { readStatuses, statusAt } from "../../src/verifier/status-list.ts";
import { createVerifier as createWebVerifier } from "../../src/verifier/web/index.ts";
import vectors from "../service/signals/status-list/vectors.json" with { type: "json" };
import { ADMIN_TOKEN, AUDIENCE, ISSUER, startIssuer } from "../support/verifier/issuer.ts";

const URI = `${ISSUER}/v1/status-lists/abcdefgh`;
const TTL_S = 10;

/** Creates an issuer with one status list, and verifiers that have no feed. */
async function createWorld(create: typeof createVerifier, options: Partial<VerifierOptions> = {}) {
  const issuer = await startIssuer();
  const moved = { wall: 0, monotonic: 0 };
  const clock = () => Date.now() + moved.wall;
  const list = {
    revoked: new Set<number>(),
    ring: undefined as Ring | undefined,
    typ: "statuslist+jwt",
    changes: {} as Readonly<Record<string, unknown>>,
    etag: undefined as string | undefined,
    status: 200,
    /** The response with the list is delayed until this promise resolves. */
    held: Promise.resolve(),
  };
  const requests: Headers[] = [];
  const sign = () => {
    const lst = encodeList(setBits(list.revoked));
    const iat = Math.floor(clock() / 1000);
    const claims = { iss: ISSUER, sub: URI, iat, exp: iat + 3 * TTL_S, ttl: TTL_S, status_list: { bits: 1, lst } };
    return createClaimsSigner({ current: readyKeys(list.ring ?? issuer.state.ring) })(list.typ, {
      ...claims,
      ...list.changes,
    });
  };
  const fetchList: typeof fetch = async (input, init) => {
    if (String(input) === issuer.jwksUrl) return fetch(input, init);
    expect([String(input), init?.redirect]).toEqual([URI, "manual"]);
    const headers = new Headers(init?.headers);
    requests.push(headers);
    const aborted = new Promise<never>((_, reject) => {
      init?.signal?.addEventListener("abort", () => reject(new Error("aborted")));
    });
    aborted.catch(() => {});
    await Promise.race([list.held, aborted]);
    if (list.status !== 200) return new Response("", { status: list.status });
    const etag = list.etag === undefined ? {} : { headers: { etag: list.etag } };
    const isSame = list.etag !== undefined && headers.get("if-none-match") === list.etag;
    return isSame ? new Response(null, { status: 304, ...etag }) : new Response(sign(), etag);
  };
  const events: VerifierEvent[] = [];
  const verifier = create({
    ...{ jwksUrl: issuer.jwksUrl, issuer: ISSUER, audience: AUDIENCE, revocations: "status-list", fetch: fetchList },
    ...{ clock, monotonic: () => performance.now() + moved.monotonic, report: (event) => void events.push(event) },
    ...options,
  });
  onTestFinished(() => verifier.close());
  const tokenAt = (idx: unknown, uri: unknown = URI) =>
    issuer.issue({ claims: JSON.stringify({ status: { status_list: { idx, uri } } }) }, 3_600_000).token;
  return {
    ...{ issuer, list, requests, events, verifier, tokenAt },
    advance(ms: number) {
      moved.wall += ms;
      moved.monotonic += ms;
    },
    async verdictOf(token: string) {
      const verdict = await verifier.verify(token);
      return verdict.ok ? "ok" : verdict.reason;
    },
  };
}

const reported = (events: readonly VerifierEvent[]) =>
  events.map(({ event }) => event).filter((event) => event.startsWith("status"));

describe.each([
  ["Node", createVerifier],
  ["WebCrypto", createWebVerifier],
])("a verifier on %s that lives on status lists", (_, create) => {
  test("accepts a token whose bit is 0, and rejects it at the next reading when it is 1", async () => {
    const { list, requests, tokenAt, verdictOf, advance, verifier, events } = await createWorld(create);
    expect(verifier.stalenessMs()).toBe(Number.POSITIVE_INFINITY);
    await verifier.ready;
    const [token, other] = [tokenAt(734_120), tokenAt(734_121)];
    const both = Promise.all([verdictOf(token), verdictOf(other), verdictOf(token)]);
    expect([await both, requests.length]).toEqual([["ok", "ok", "ok"], 1]);
    expect(requests[0]?.get("accept")).toBe("application/statuslist+jwt");
    expect(verifier.stalenessMs()).toBeLessThan(TTL_S * 1000);
    list.revoked.add(734_120);
    expect([await verdictOf(token), requests.length]).toEqual(["ok", 1]);
    advance(TTL_S * 1000);
    expect([await verdictOf(token), await verdictOf(other), requests.length]).toEqual(["revoked", "ok", 2]);
    expect(reported(events)).toEqual(["status_lists_read"]);
  });

  test("confirms a list by its entity tag, as often as pollIntervalMs says", async () => {
    const { list, requests, tokenAt, verdictOf, advance } = await createWorld(create, { pollIntervalMs: 2000 });
    list.etag = 'W/"one"';
    const token = tokenAt(1);
    expect(await verdictOf(token)).toBe("ok");
    advance(2000);
    list.revoked.add(1);
    expect([await verdictOf(token), requests[1]?.get("if-none-match")]).toEqual(["ok", list.etag]);
    list.etag = 'W/"two"';
    expect([await verdictOf(token), requests.length]).toEqual(["ok", 2]);
    advance(2000);
    expect([await verdictOf(token), requests.length]).toEqual(["revoked", 3]);
  });

  test("accepts nothing by a list that has expired, and learns then what it has missed", async () => {
    const { list, requests, tokenAt, verdictOf, advance, events } = await createWorld(create);
    const [token, dead] = [tokenAt(1), tokenAt(2)];
    list.revoked.add(2);
    expect([await verdictOf(token), await verdictOf(dead)]).toEqual(["ok", "revoked"]);
    list.status = 503;
    advance(2 * TTL_S * 1000);
    expect(await verdictOf(token)).toBe("ok");
    expect([await verdictOf(token), requests.length]).toEqual(["ok", 2]);
    advance(TTL_S * 1000);
    expect([await verdictOf(token), await verdictOf(dead)]).toEqual(["unavailable", "revoked"]);
    list.status = 200;
    list.revoked.add(1);
    advance(1000);
    expect(await verdictOf(token)).toBe("revoked");
    expect(reported(events)).toEqual(["status_lists_read", "status_lists_unreadable", "status_lists_read"]);
  });

  test("does not wait for lists that cannot be read while it can do without", async () => {
    const { list, tokenAt, verdictOf, advance } = await createWorld(create);
    const token = tokenAt(1);
    expect(await verdictOf(token)).toBe("ok");
    list.status = 503;
    advance(TTL_S * 1000);
    expect(await verdictOf(token)).toBe("ok");
    advance(1000);
    const held = Promise.withResolvers<void>();
    let isOver = false;
    list.held = held.promise.finally(() => {
      isOver = true;
    });
    expect([await verdictOf(token), isOver]).toEqual(["ok", false]);
    held.resolve();
  });

  test("accepts nothing by a list that is older than maxStalenessMs", async () => {
    const { list, tokenAt, verdictOf, advance } = await createWorld(create, { maxStalenessMs: 12_000 });
    const token = tokenAt(1);
    expect(await verdictOf(token)).toBe("ok");
    list.status = 500;
    advance(10_000);
    expect(await verdictOf(token)).toBe("ok");
    advance(2_001);
    expect(await verdictOf(token)).toBe("unavailable");
  });

  test.each([
    ["another issuer", { changes: { iss: "https://other.example" } }],
    ["another address", { changes: { sub: `${URI}x` } }],
    ["no time", { changes: { iat: "now" } }],
    ["a time that is over", { changes: { exp: 1_000_000_000 } }],
    ["another type", { typ: "at+jwt" }],
    ["a key of somebody else", { ring: generateRing("ES256", Date.now()) }],
    ["no list", { changes: { status_list: undefined } }],
    ["bits that no list has", { changes: { status_list: { bits: 3, lst: encodeList(setBits([])) } } }],
    ["bytes that are not ZLIB", { changes: { status_list: { bits: 1, lst: "AAAA" } } }],
    ["a list without the index", { changes: { status_list: { bits: 1, lst: encodeList(new Uint8Array(4)) } } }],
    ["more than a list may have", { changes: { status_list: { bits: 1, lst: encodeList(new Uint8Array(2 ** 21)) } } }],
  ])("accepts nothing by a list with %s", async (_name, changes) => {
    const { list, tokenAt, verdictOf, requests } = await createWorld(create);
    Object.assign(list, changes);
    const token = tokenAt(100);
    expect([await verdictOf(token), await verdictOf(token), requests.length]).toEqual([
      "unavailable",
      "unavailable",
      1,
    ]);
  });

  test.each([
    ["no place", undefined, URI],
    ["a negative index", -1, URI],
    ["no index", "1", URI],
    ["no address", 1, 2],
    ["an address of another host", 1, "https://other.example/v1/status-lists/abcdefgh"],
    ["an address that is none", 1, "lists"],
  ])("reads nothing for a token with %s", async (_name, idx, uri) => {
    const { tokenAt, verdictOf, requests } = await createWorld(create);
    expect([await verdictOf(tokenAt(idx, uri)), requests.length]).toEqual(["unavailable", 0]);
  });

  test("rejects every status but that of valid tokens", async () => {
    const { list, tokenAt, verdictOf } = await createWorld(create);
    list.changes = { status_list: { bits: 2, lst: deflateSync(Buffer.of(0b11_10_01_00)).toString("base64url") } };
    const verdicts = await Promise.all([0, 1, 2, 3, 4].map((index) => verdictOf(tokenAt(index))));
    expect(verdicts).toEqual(["ok", "revoked", "revoked", "revoked", "unavailable"]);
  });

  test("asks the service itself where it has the admin API and no list", async () => {
    const issuer = await startIssuer();
    const transport = createConnectTransport({ httpVersion: "2", baseUrl: issuer.adminUrl });
    const { list, tokenAt, verdictOf } = await createWorld(create, { transport, adminToken: ADMIN_TOKEN });
    list.status = 503;
    expect(await verdictOf(tokenAt(1))).toBe("ok");
    expect([issuer.seen.introspections.length, issuer.seen.cursors]).toEqual([1, []]);
  });

  test("reads a list again whose key has been withdrawn", async () => {
    const { issuer, list, requests, tokenAt, verdictOf, advance, events } = await createWorld(create, {
      pollIntervalMs: 60_000,
      maxStalenessMs: 60_000,
    });
    list.changes = { exp: undefined, ttl: 3600 };
    const old = issuer.state.ring;
    expect(await verdictOf(tokenAt(1))).toBe("ok");
    issuer.setRing(generateRing("ES256", Date.now()));
    list.ring = old;
    // The list is still signed by the old key, which the key set no longer contains.
    advance(300_000);
    expect([await verdictOf(tokenAt(1)), requests.length]).toEqual(["unavailable", 2]);
    list.ring = undefined;
    advance(1000);
    expect(await verdictOf(tokenAt(1))).toBe("ok");
    expect(events.length).toBeGreaterThan(0);
  });

  test("needs an issuer that is a URL", () => {
    const options = { jwksUrl: "https://keys.example", issuer: "sessions", audience: AUDIENCE } as const;
    expect(() => create({ ...options, revocations: "status-list" })).toThrow(TypeError);
  });
});

test.each(vectors.vectors)(
  "the statuses of the draft's test vector with $bits bits",
  async ({ bits, lst, statuses }) => {
    const read = await readStatuses({ bits, lst });
    const expected = new Map(statuses as [number, number][]);
    const wrong: number[] = [];
    for (let index = 0; index < 2 ** 20; index++)
      if (statusAt(read, index) !== (expected.get(index) ?? 0)) wrong.push(index);
    expect([wrong, statusAt(read, 2 ** 20)]).toEqual([[], undefined]);
  },
);

test("of more lists at once than it keeps, each decides about its tokens", async () => {
  const issuer = await startIssuer();
  const sign = createClaimsSigner({ current: readyKeys(issuer.state.ring) });
  const lst = encodeList(setBits([]));
  const readAll = Promise.withResolvers<void>();
  const uris = Array.from({ length: 2_100 }, (_, at) => `${ISSUER}/v1/status-lists/list${String(at).padStart(4, "0")}`);
  let asked = 0;
  const fetchList: typeof fetch = async (input, init) => {
    if (String(input) === issuer.jwksUrl) return fetch(input, init);
    if (++asked === uris.length) readAll.resolve();
    await readAll.promise;
    const iat = Math.floor(Date.now() / 1000);
    const claims = { iss: ISSUER, sub: String(input), iat, exp: iat + 300, ttl: 100, status_list: { bits: 1, lst } };
    return new Response(sign("statuslist+jwt", claims));
  };
  const options = { jwksUrl: issuer.jwksUrl, issuer: ISSUER, audience: AUDIENCE, fetch: fetchList };
  const verifier = createVerifier({ ...options, revocations: "status-list" });
  onTestFinished(() => verifier.close());
  await verifier.ready;
  const claimsOf = (uri: string) => JSON.stringify({ status: { status_list: { idx: 1, uri } } });
  const tokens = uris.map((uri) => issuer.issue({ claims: claimsOf(uri) }, 3_600_000).token);
  const verdicts = await Promise.all(tokens.map((token) => verifier.verify(token)));
  expect(verdicts.filter(({ ok }) => !ok)).toEqual([]);
});
