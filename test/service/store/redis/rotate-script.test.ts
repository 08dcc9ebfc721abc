/** Compares the scripts with the pure functions, one decision at a time, for states, keys and tokens at and around every limit. */
import fc from "fast-check";
import { expect, test } from "vitest";
import {
  boundKey,
  type DevicePresentation,
  type DeviceVerdict,
  judgeDevice,
  judgeEnd,
  provenBy,
} from "../../../../src/service/session/devices/binding.ts";
import { thumbprintOf } from "../../../../src/service/session/devices/key.ts";
import { decide, type RotationState, type TokenFields } from "../../../../src/service/session/rotation/rotation.ts";
import { storeMs } from "../../../../src/service/session/time.ts";
import { decodeDevice, encodeProofKey, keyKind } from "../../../../src/service/store/redis/encoding/device-record.ts";
import { encodeBody, flagsOf } from "../../../../src/service/store/redis/encoding/record.ts";
import { createRedisStore } from "../../../../src/service/store/redis/store.ts";
import { redisOptions } from "../../../support/store/backends.ts";
import { someKey } from "../../../support/store/device.ts";
import { newSession, nonce, outcomeOf, REUSE_INTERVAL } from "../../../support/store/sessions.ts";
import { encodeHead, NOW, redisOfTests, STILL } from "../../../support/store/still-redis.ts";

const R = REUSE_INTERVAL;
const DAY = 86_400_000;
/** The life of a device cookie, in ms. */
const LIFE = 3 * R;
const WITH_DEVICE = 2;
const NEVER = 2 ** 48 - 1;

const server = redisOfTests();

const ages = [R, 2 * R, 3 * R, 4 * R].flatMap((age) => [age - 1, age, age + 1]);
/** Some times are in the future, as if the clock had been set back. */
const time = fc
  .constantFrom(0, NOW - 1, NOW, NEVER, ...ages.map((age) => NOW - age), ...ages.map((age) => NOW + age))
  .map(storeMs);
const nonces = fc.constantFrom("AAAAAAAAAAA", "AAAAAAAAAAE", "__________8", "AAAAABAAAAA", "q83vEjRWeJA");
const generation = fc.constantFrom(1, 2, 3, 4, 5, 4_294_967_290);
const state: fc.Arbitrary<RotationState> = fc.record({
  generation: fc.constantFrom(1, 2, 3, 4, 4_294_967_290),
  nonce: nonces,
  siblingsSince: time,
  childNonce: nonces,
  childMintedAt: time,
  childServedAt: time,
});
const token: fc.Arbitrary<TokenFields> = fc.record({ generation, nonce: nonces, issuedAt: time });

/** Builds a record. @param device the end of the record if the session has a key */
function record(
  state: RotationState,
  session: ReturnType<typeof newSession>,
  device: Uint8Array = new Uint8Array(),
): Buffer {
  const head = encodeHead(session, storeMs(NOW - DAY), state);
  if (device.length > 0) head.writeUInt8(flagsOf(session) + WITH_DEVICE, 0);
  return Buffer.concat([head, encodeBody(session), device]);
}

const keyOf = (session: ReturnType<typeof newSession>) =>
  `{${Buffer.from(session.sid, "base64url").toString("hex", 0, 1)}}s${session.sid}`;

/** Opens the store at the time of all decisions. */
function openStore() {
  return createRedisStore(redisOptions(server().url, STILL));
}

test("the script decides as the function does", async () => {
  const store = await openStore();
  await fc.assert(
    fc.asyncProperty(state, token, async (state, token) => {
      const session = newSession("subject", { idleTimeoutMs: 30 * DAY, absoluteLifetimeMs: 90 * DAY });
      await server().admin.set(keyOf(session), record(state, session));
      const fresh = nonce();
      const expected = decide(state, token, fresh, NOW, R);
      const result = await store.rotate(session.sid, token, fresh);
      expect(outcomeOf(result)).toBe(expected.outcome);
      const found = await store.find(session.sid);
      if (expected.outcome === "reuse") {
        expect(found).toEqual({ ok: false, reason: "revoked" });
      } else {
        expect(found).toMatchObject({ ok: true, rotation: expected.next });
        const { generation, childNonce, childMintedAt } = expected.next;
        expect(result).toMatchObject({
          child: { generation: generation + 1, nonce: childNonce, issuedAt: childMintedAt },
          now: NOW,
        });
      }
    }),
    { numRuns: 3_000 },
  );
  await store.close();
});

test.each([
  ["one ms before its absolute expiry it is served", -1, "recover"],
  ["at its absolute expiry it has expired", 0, "expired"],
])("%s", async (_, ms, outcome) => {
  const store = await openStore();
  const session = newSession("subject", { idleTimeoutMs: 30 * DAY, absoluteLifetimeMs: DAY - ms });
  const state = {
    generation: 1,
    nonce: nonce(),
    siblingsSince: storeMs(0),
    childNonce: nonce(),
    childMintedAt: storeMs(NOW - DAY),
    childServedAt: storeMs(0),
  };
  await server().admin.set(keyOf(session), record(state, session));
  const result = await store.rotate(session.sid, { generation: 1, nonce: state.nonce, issuedAt: storeMs(0) }, nonce());
  expect(outcomeOf(result)).toBe(outcome);
  await store.close();
});

const key = fc.constantFrom(someKey("ES256"), someKey("RS256"));

/** The end of a record with a key, which is registered, bound by its first use, or proven by each request (DPoP). */
const device = fc.oneof(
  fc.constant(Buffer.alloc(0)),
  fc.record({ key, since: time, isBound: fc.boolean() }).map(({ key, since, isBound }) => {
    const tail = Buffer.alloc(9);
    tail.writeUIntBE(since, 0, 6);
    tail.writeUInt16BE(key.bytes.length, 6);
    tail.writeUInt8(keyKind(key) + (isBound ? 2 : 0), 8);
    return Buffer.concat([key.bytes, key.thumbprint, tail]);
  }),
  fc.record({ key, since: fc.oneof(fc.constant(0), time) }).map(({ key, since }) => {
    const bytes = encodeProofKey(thumbprintOf({ key }));
    bytes.writeUIntBE(since, 0, 6);
    return bytes;
  }),
);
const lifeMs = fc.constantFrom(LIFE, DAY - 1, DAY, DAY + 1);
const proof = key.map((key) => ({ thumbprint: thumbprintOf({ key }) }));
const cookie = fc.record({ thumbprint: key.map(({ thumbprint }) => thumbprint), issuedAtMs: time });
const presentation: fc.Arbitrary<DevicePresentation> = fc.oneof(
  // What a browser presents.
  fc.record(
    { lifeMs, cookie: fc.option(cookie, { nil: undefined }), skipped: fc.boolean(), proof },
    { requiredKeys: ["lifeMs", "cookie", "skipped"] },
  ),
  // What a client presents at the token endpoint.
  fc
    .record({ lifeMs, proof, clientId: fc.constantFrom("web", "other") }, { requiredKeys: ["lifeMs"] })
    .map(({ lifeMs, proof, clientId }) => {
      const proven = proof && { proof, ...(clientId && { clientId }) };
      return { lifeMs, cookie: undefined, skipped: false, transport: "token" as const, ...proven };
    }),
);
const scenario = fc.record({
  state,
  token,
  device,
  presentation,
  required: fc.constantFrom({}, { deviceRequired: true as const }),
  transport: fc.constantFrom({}, { transport: "cookie" as const }, { transport: "token" as const }),
});

test("the script judges devices as the function does", async () => {
  const store = await openStore();
  const reached = new Set<string>();
  await fc.assert(
    fc.asyncProperty(scenario, async ({ state, token, device, presentation, required, transport }) => {
      const lifetimes = { idleTimeoutMs: 30 * DAY, absoluteLifetimeMs: 90 * DAY };
      const session = newSession("subject", { ...lifetimes, ...required, ...transport });
      await server().admin.set(keyOf(session), record(state, session, device));
      const createdAt = storeMs(NOW - DAY);
      const before = device.length === 0 ? undefined : decodeDevice(device, createdAt).device;
      const subject = { ...session, device: before, createdAt };
      const fresh = nonce();

      const result = await store.rotate(session.sid, token, fresh, presentation);

      const verdict = judgeDevice(subject, token, presentation, NOW, R);
      reached.add(verdict);
      if (!isServing(verdict)) {
        expect(outcomeOf(result)).toBe(verdict);
        return;
      }
      const { outcome } = decide(state, token, fresh, NOW, R, verdict === "held");
      expect(outcomeOf(result)).toBe(outcome);
      if (outcome === "reuse") return;
      const proven = provenBy(verdict, outcome);
      expect(result).toMatchObject({ device: proven });
      const found = await store.find(session.sid);
      const bound = proven === "first_use" ? boundKey(subject, presentation, NOW) : before;
      expect(found.ok && found.session.device).toEqual(bound);
    }),
    { numRuns: 4_000 },
  );
  expect([...reached].sort()).toEqual([...VERDICTS].sort());
  await store.close();
});

test("the script that ends a session judges its holder as the function does", async () => {
  const store = await openStore();
  const holder = fc.record({ issuedAt: time, proof }, { requiredKeys: ["issuedAt"] });
  await fc.assert(
    fc.asyncProperty(state, device, holder, async (state, device, holder) => {
      const session = newSession("subject", { idleTimeoutMs: 30 * DAY, absoluteLifetimeMs: 90 * DAY });
      await server().admin.set(keyOf(session), record(state, session, device));
      const createdAt = storeMs(NOW - DAY);
      const before = device.length === 0 ? undefined : decodeDevice(device, createdAt).device;
      const verdict = judgeEnd({ device: before, createdAt }, holder, holder.proof);
      const result = await store.end(session.sid, "logout", undefined, holder);
      expect(result.ok ? "allowed" : result.reason).toBe(verdict);
    }),
    { numRuns: 1_000 },
  );
  await store.close();
});

const SERVING = { unproven: true, proven: true, first_use: true, held: true, first_proof: true } as const;
const REFUSALS = {
  proof_missing: true,
  other_key: true,
  device_proof_missing: true,
  device_required: true,
  wrong_transport: true,
  wrong_client: true,
  two_holders: true,
} satisfies Record<Exclude<DeviceVerdict, keyof typeof SERVING>, true>;
const VERDICTS = Object.keys({ ...SERVING, ...REFUSALS });

function isServing(verdict: DeviceVerdict): verdict is keyof typeof SERVING {
  return verdict in SERVING;
}
