import { generateKeyPairSync } from "node:crypto";
import { calculateJwkThumbprint } from "jose";
import { describe, expect, test } from "vitest";
import { generateMacKey, generateRing, generateSigningKey } from "../../../src/service/tokens/generate-key.ts";
import { SIGNING_ALGS } from "../../../src/service/tokens/jws.ts";
import { readyKeys } from "../../../src/service/tokens/keys.ts";
import { KeyRingFault, parseRing, type Ring, type RingKey, writeRing } from "../../../src/service/tokens/ring.ts";
import {
  type GenerateKey,
  nextStep,
  removeKey,
  revokeKey,
  rotateKeys,
  withoutSpent,
} from "../../../src/service/tokens/ring-steps.ts";
import { NOW } from "../../support/tokens.ts";

const MINUTE = 60_000;
const times = {
  jwksMaxAgeMs: 5 * MINUTE,
  accessTokenTtlMs: 5 * MINUTE,
  sessionIdleTtlMs: 14 * 1440 * MINUTE,
  pickUpMs: MINUTE,
};
const generateAt =
  (now: number): GenerateKey =>
  (kind) =>
    kind === "mac" ? generateMacKey(now) : generateSigningKey("ES256", now);

const inState = (keys: readonly RingKey[], state: string) => keys.filter((key) => key.state === state);
const kidOf = (keys: readonly RingKey[], state: string) => inState(keys, state)[0]?.kid ?? "";

describe("a new ring", () => {
  test.each(SIGNING_ALGS)("has a signing key and its successor, named by their thumbprints (%s)", async (alg) => {
    const ring = generateRing(alg, NOW);
    expect(ring.signing.map((key) => key.state)).toEqual(["signing", "published"]);
    expect(ring.mac.map((key) => key.state)).toEqual(["signing", "published"]);
    for (const { kid, jwk } of ring.signing) expect(kid).toBe(await calculateJwkThumbprint(jwk as never));
  });

  test("survives writing and reading", () => {
    const ring = generateRing("ES256", NOW);
    const revoked = revokeKey(ring, kidOf(ring.signing, "signing"), generateAt(NOW), NOW);
    expect(parseRing(writeRing(ring))).toEqual(ring);
    expect(parseRing(writeRing(revoked))).toEqual(revoked);
  });

  test("shows the world public members only", () => {
    const { jwks } = readyKeys(generateRing("ES256", NOW));
    for (const key of jwks.keys) {
      expect(Object.keys(key).sort()).toEqual(["alg", "crv", "kid", "kty", "use", "x", "y"]);
    }
    expect(jwks.keys).toHaveLength(2);
    for (const key of readyKeys(generateRing("RS256", NOW)).jwks.keys) {
      expect(Object.keys(key).sort()).toEqual(["alg", "e", "kid", "kty", "n", "use"]);
    }
  });
});

describe("a broken ring is refused with one error that names the fault and no secret", () => {
  const ring = generateRing("ES256", NOW);
  const other = generateRing("ES256", NOW);
  const plain = JSON.parse(writeRing(ring));
  const secrets = [...ring.signing.map((key) => key.jwk?.d), ...ring.mac.map((key) => key.jwk?.k)];

  const halves = generateRing("EdDSA", NOW);
  const mixed = writeRing({
    ...halves,
    signing: halves.signing.map((key) => ({ ...key, jwk: { ...key.jwk, x: plain.signing[0].jwk.x } })),
  });

  const weak = writeRing({
    ...halves,
    signing: halves.signing.map((key) => ({ ...key, jwk: { ...key.jwk, x: "A".repeat(43) } })),
  });

  /** Returns a ring whose signing key is an RSA key of this size, with other members. */
  function withRsa(modulusLength: number, members: object = {}): string {
    const jwk = generateKeyPairSync("rsa", { modulusLength }).privateKey.export({ format: "jwk" });
    const [signing] = plain.signing;
    return JSON.stringify({ ...plain, signing: [{ ...signing, alg: "RS256", jwk: { ...jwk, ...members } }] });
  }

  /** Returns the ring with the value at `path` replaced, or removed. */
  function changed(path: (string | number)[], value?: unknown): string {
    const copy = structuredClone(plain);
    const parent = path.slice(0, -1).reduce((at, name) => at[name], copy);
    const last = path.at(-1) ?? "";
    if (value === undefined) delete parent[last];
    else parent[last] = value;
    return JSON.stringify(copy);
  }

  test.each<[string, string, RegExp]>([
    ["nothing", "", /not JSON/],
    ["half a file", writeRing(ring).slice(0, 400), /not JSON/],
    ["another format", "[]", /the ring: not an object/],
    ["null", "null", /the ring: not an object/],
    ["a number", "1", /the ring: not an object/],
    ["a key that is null", changed(["signing", 0], null), /signing\[0\]: not an object/],
    ["a secret that is a text", changed(["mac", 0, "jwk"], "secret"), /mac\[0\]\.jwk: not an object/],
    ["another version", changed(["version"], 2), /version/],
    ["no MAC keys", changed(["mac"]), /mac is missing/],
    ["an unknown member", changed(["extra"], 1), /the ring: has members other than version, signing, mac$/m],
    [
      "a key with an unknown member",
      changed(["mac", 0, "extra"], 1),
      /mac\[0\]: has members other than kid, alg, state, since, jwk$/m,
    ],
    ["keys that are no list", changed(["mac"], {}), /mac: not a list/],
    ["no key", changed(["signing"], []), /signing: 0 keys are in state signing/],
    ["two that sign", changed(["mac", 1, "state"], "signing"), /mac: 2 keys are in state signing/],
    ["an unknown state", changed(["mac", 1, "state"], "gone"), /mac\[1\]\.state/],
    ["a name that is a number", changed(["mac", 0, "kid"], 12_345_678), /mac\[0\]\.kid/],
    ["a name of another form", changed(["mac", 0, "kid"], "0x12"), /mac\[0\]\.kid/],
    ["a name with a path", changed(["signing", 0, "kid"], "../x"), /signing\[0\]\.kid/],
    ["a name that is there twice", changed(["signing", 1, "kid"], plain.signing[0].kid), /is there twice/],
    [
      "an algorithm of the other kind",
      changed(["signing", 0, "alg"], "HS256"),
      /signing\[0\]\.alg: must be one of ES256/,
    ],
    ["a MAC key of the other kind", changed(["mac", 0, "alg"], "ES256"), /mac\[0\]\.alg: must be HS256/],
    ["no algorithm", changed(["signing", 0, "alg"], "none"), /signing\[0\]\.alg/],
    ["no time", changed(["signing", 0, "since"], "yesterday"), /signing\[0\]\.since/],
    ["a year for a time", changed(["signing", 0, "since"], 2026), /signing\[0\]\.since/],
    ["a key without its secret", changed(["signing", 0, "jwk"]), /signing\[0\]\.jwk: missing/],
    ["a revoked key with its secret", changed(["mac", 1, "state"], "revoked"), /mac\[1\]\.jwk: a revoked key/],
    ["a public key", changed(["signing", 0, "jwk", "d"]), /signing\[0\]\.jwk: d is missing/],
    ["another curve", changed(["signing", 0, "jwk", "crv"], "P-384"), /signing\[0\]\.jwk\.crv: must be P-256/],
    [
      "a secret cut short",
      changed(["mac", 0, "jwk", "k"], plain.mac[0].jwk.k.slice(1)),
      /mac\[0\]\.jwk\.k: not 32 bytes/,
    ],
    ["a secret in a list", changed(["mac", 0, "jwk", "k"], [plain.mac[0].jwk.k]), /not 32 bytes/],
    ["a secret in another alphabet", changed(["mac", 0, "jwk", "k"], `${plain.mac[0].jwk.k}=`), /not 32 bytes/],
    [
      "a point off the curve",
      changed(["signing", 0, "jwk", "x"], "A".repeat(43)),
      /signing\[0\]\.jwk: not a point of its curve/,
    ],
    ["a point of small order", weak, /signing\[0\]\.jwk: a point of small order/],
    ["a small modulus", withRsa(1024), /signing\[0\]\.jwk\.n: not a modulus of 2048 to 4096 bits/],
    ["the exponent 1", withRsa(2048, { e: "AQ" }), /signing\[0\]\.jwk\.e: must be AQAB/],
    ["the exponent 3", withRsa(2048, { e: "Aw" }), /signing\[0\]\.jwk\.e: must be AQAB/],
    ["halves of two RSA pairs", withRsa(2048, { n: generateSigningKey("RS256", NOW).jwk?.n }), /not a working pair/],
    ["an RSA factor in a list", withRsa(2048, { q: ["AQAB"] }), /signing\[0\]\.jwk\.q: not a number in base64url/],
    ["an RSA factor that is no number", withRsa(2048, { q: "A=" }), /signing\[0\]\.jwk\.q: not a number in base64url/],
    ["an RSA key without a factor", withRsa(2048, { q: undefined }), /signing\[0\]\.jwk: q is missing/],
    ["halves of two pairs", changed(["signing", 0, "jwk", "d"], other.signing[0]?.jwk?.d), /not a working pair/],
    ["halves of two Edwards pairs", mixed, /not a working pair/],
  ])("%s", (_, text, fault) => {
    let refused: unknown;
    try {
      readyKeys(parseRing(text));
    } catch (error) {
      refused = error;
    }
    expect(refused).toBeInstanceOf(KeyRingFault);
    const stack = String((refused as Error).stack);
    expect(stack).toMatch(fault);
    for (const secret of secrets) expect(stack).not.toContain(secret?.slice(0, 8));
  });
});

describe("rotation of keys", () => {
  const ring = generateRing("ES256", NOW);
  const both = ["signing", "mac"] as const;

  test("waits until every verifier knows the successor", () => {
    const due = NOW + times.pickUpMs + times.jwksMaxAgeMs;
    const step = (now: number, force = false) => rotateKeys(ring, ["signing"], generateAt(now), now, times, force);
    expect(() => step(due - 1)).toThrow(/may sign from 2026-01-02T03:10:05.678Z/);
    expect(kidOf(step(due).signing, "signing")).toBe(kidOf(ring.signing, "published"));
    expect(kidOf(step(due - 1, true).signing, "signing")).toBe(kidOf(ring.signing, "published"));
    // MAC keys need no time for third parties to fetch them, because only the instances use them.
    expect(() => rotateKeys(ring, ["mac"], generateAt(NOW), NOW + times.pickUpMs - 1, times, false)).toThrow(/mac key/);
    const now = NOW + times.pickUpMs;
    expect(kidOf(rotateKeys(ring, ["mac"], generateAt(now), now, times, false).mac, "signing")).toBe(
      kidOf(ring.mac, "published"),
    );
  });

  test("changes neither kind when one is too young", () => {
    const now = NOW + times.pickUpMs; // The age of the MAC key allows its rotation, but that of the signing key does not.
    expect(() => rotateKeys(ring, ["mac", "signing"], generateAt(now), now, times, false)).toThrow(/signing key/);
  });

  test("keeps one signing key, a successor, and every key whose tokens may live", () => {
    let now: number = NOW;
    let at: Ring = ring;
    const born = new Map<string, number>();
    for (let round = 0; round < 40; round += 1) {
      now += 7 * MINUTE;
      const signing = kidOf(at.signing, "signing");
      at = rotateKeys(at, both, generateAt(now), now, times, false);
      born.set(signing, now); // The key has signed until now, so its last token was issued now.
      for (const kind of both) {
        expect(inState(at[kind], "signing")).toHaveLength(1);
        expect(inState(at[kind], "published")).toHaveLength(1);
      }
      for (const [kid, last] of born) {
        const there = at.signing.some((key) => key.kid === kid);
        expect(there).toBe(now < last + times.pickUpMs + times.accessTokenTtlMs);
      }
      expect(parseRing(writeRing(at))).toEqual(at);
    }
    expect(inState(at.mac, "retired")).toHaveLength(40); // 40 keys cover the life of refresh tokens, 280 minutes.
  });

  test("starts to publish where no successor is, and promotes no key that is unknown", () => {
    const alone = { ...ring, signing: inState(ring.signing, "signing") };
    const next = rotateKeys(alone, ["signing"], generateAt(NOW), NOW, times, false);
    expect(kidOf(next.signing, "signing")).toBe(kidOf(ring.signing, "signing"));
    expect(inState(next.signing, "published")).toHaveLength(1);
  });
});

describe("taking a key out", () => {
  const late = NOW + 7 * MINUTE;
  const ring = rotateKeys(generateRing("ES256", NOW), ["signing", "mac"], generateAt(late), late, times, false);

  test("is refused while tokens under it may live", () => {
    for (const [kind, life] of [
      ["signing", times.accessTokenTtlMs],
      ["mac", times.sessionIdleTtlMs],
    ] as const) {
      const kid = kidOf(ring[kind], "retired");
      const due = late + times.pickUpMs + life;
      expect(() => removeKey(ring, kid, generateAt(due), due - 1, times, false)).toThrow(/is needed until/);
      expect(kidOf(removeKey(ring, kid, generateAt(due), due, times, false)[kind], "retired")).toBe("");
      expect(kidOf(removeKey(ring, kid, generateAt(late), late, times, true)[kind], "retired")).toBe("");
      expect(kidOf(withoutSpent(ring, due - 1, times)[kind], "retired")).toBe(kid);
      expect(kidOf(withoutSpent(ring, due, times)[kind], "retired")).toBe("");
    }
  });

  test("is refused for the key that signs, and for one that is not there", () => {
    const signing = kidOf(ring.signing, "signing");
    expect(() => removeKey(ring, signing, generateAt(late), late, times, true)).toThrow(/rotate or revoke/);
    expect(() => removeKey(ring, "absent", generateAt(late), late, times, true)).toThrow(/no key absent/);
  });

  test("of a published key publishes another", () => {
    const kid = kidOf(ring.mac, "published");
    const next = removeKey(ring, kid, generateAt(late), late, times, false);
    expect(inState(next.mac, "published")).toHaveLength(1);
    expect(kidOf(next.mac, "published")).not.toBe(kid);
  });
});

describe("the emergency", () => {
  const ring = generateRing("ES256", NOW);

  test.each(["signing", "mac"] as const)(
    "a revoked %s key loses its secret and its successor signs at once",
    (kind) => {
      const kid = kidOf(ring[kind], "signing");
      const next = revokeKey(ring, kid, generateAt(NOW), NOW);
      expect(next[kind].find((key) => key.kid === kid)).toEqual({
        kid,
        alg: ring[kind][0]?.alg,
        state: "revoked",
        since: NOW,
      });
      expect(kidOf(next[kind], "signing")).toBe(kidOf(ring[kind], "published"));
      expect(inState(next[kind], "published")).toHaveLength(1);
      expect(writeRing(next)).not.toContain(ring[kind][0]?.jwk?.[kind === "mac" ? "k" : "d"]);
    },
  );

  test("of a published or retired key leaves the one that signs, and is done once", () => {
    const kid = kidOf(ring.signing, "published");
    const next = revokeKey(ring, kid, generateAt(NOW), NOW);
    expect(kidOf(next.signing, "signing")).toBe(kidOf(ring.signing, "signing"));
    expect(inState(next.signing, "published")).toHaveLength(1);
    expect(revokeKey(next, kid, generateAt(NOW), NOW + 1)).toBe(next);
  });

  test("keeps the name for the restores of older backups, unless it is removed by name", () => {
    const kid = kidOf(ring.signing, "signing");
    const revoked = revokeKey(ring, kid, generateAt(NOW), NOW);
    const due = NOW + times.pickUpMs + times.jwksMaxAgeMs + times.accessTokenTtlMs;
    expect(readyKeys(withoutSpent(revoked, due, times)).revokedKids).toEqual([kid]);
    const rotated = rotateKeys(revoked, ["signing", "mac"], generateAt(due), due, times, true);
    expect(readyKeys(rotated).revokedKids).toEqual([kid]);
    expect(() => removeKey(revoked, kid, generateAt(due), due - 1, times, false)).toThrow(/is needed until/);
    expect(readyKeys(removeKey(revoked, kid, generateAt(due), due, times, false)).revokedKids).toEqual([]);
  });
});

test("a signing key never ages out: an operator replaces it", () => {
  const [signing] = generateRing("ES256", NOW).signing;
  expect(signing && nextStep("signing", signing, times)).toBeUndefined();
});

describe("a ring with several keys of one state", () => {
  const at = (key: RingKey, state: RingKey["state"], since: number): RingKey => ({ ...key, state, since });
  const mac = (state: RingKey["state"], since: number) => at(generateMacKey(NOW), state, since);

  test("lets the oldest published key sign next", () => {
    const [younger, signing, older] = [mac("published", NOW + 2), mac("signing", NOW), mac("published", NOW + 1)];
    const ring: Ring = { ...generateRing("ES256", NOW), mac: [younger, signing, older] };
    const rotated = rotateKeys(ring, ["mac"], generateAt(NOW), NOW + 60 * MINUTE, times, false);
    expect(kidOf(rotated.mac, "signing")).toBe(older.kid);
    expect(kidOf(rotated.mac, "published")).toBe(younger.kid);
  });

  test("loses only the key that is removed, and keeps its signing key if another one is revoked", () => {
    const [signing, one, two] = [mac("signing", NOW), mac("retired", NOW), mac("retired", NOW)];
    const ring: Ring = { ...generateRing("ES256", NOW), mac: [signing, mac("published", NOW), one, two] };
    const removed = removeKey(ring, one.kid, generateAt(NOW), NOW, times, true);
    expect(removed.mac).toEqual(ring.mac.filter((key) => key !== one));
    const revoked = revokeKey(ring, two.kid, generateAt(NOW), NOW);
    expect(revoked.mac.map(({ state }) => state)).toEqual(["signing", "published", "retired", "revoked"]);
    expect(kidOf(revoked.mac, "signing")).toBe(signing.kid);
  });
});
