/** The rules of device binding, and the edges of the times by which it decides. The scripts of Redis decide by the same ones. */
import { expect, test } from "vitest";
import {
  boundKey,
  type DevicePresentation,
  isReplaceable,
  isSameThumbprint,
  judgeDevice,
  judgeEnd,
  mayRegister,
  NO_PRESENTATION,
  provenBy,
} from "../../../../src/service/session/devices/binding.ts";
import { type DeviceBinding, thumbprintBytes, thumbprintOf } from "../../../../src/service/session/devices/key.ts";
import { type StoreMs, storeMs } from "../../../../src/service/session/time.ts";

const R = 10_000;
const LIFE = 60_000;
const CREATED = storeMs(1_000_000);
const SINCE = storeMs(CREATED + 500_000);
const thumbprint = thumbprintBytes(`${"B".repeat(42)}A`);
const bound: DeviceBinding = {
  key: { algorithm: "ES256", bytes: new Uint8Array(64), thumbprint },
  state: "bound",
  since: SINCE,
};

type Given = {
  readonly device?: DeviceBinding;
  readonly issuedAt?: number;
  readonly cookieAt?: number;
  readonly required?: boolean;
};

/** Returns the verdicts one millisecond before a time, at it, and after it. */
function around(time: number, given: (now: StoreMs) => Given) {
  return [-1, 0, 1].map((offset) => {
    const now = storeMs(time + offset);
    const { device, issuedAt = CREATED, cookieAt, required } = given(now);
    const session = { device, createdAt: CREATED, ...(required && { deviceRequired: true as const }) };
    const presentation: DevicePresentation = {
      lifeMs: LIFE,
      cookie: cookieAt === undefined ? undefined : { thumbprint, issuedAtMs: storeMs(cookieAt) },
      skipped: false,
    };
    return judgeDevice(session, { issuedAt: storeMs(issuedAt) }, presentation, now, R);
  });
}

test("a session that requires a key may lack it for the life of a device cookie", () => {
  expect(around(CREATED + LIFE, () => ({ required: true }))).toEqual(["unproven", "unproven", "device_required"]);
});

test("a device cookie proves the key for its life, also if a clock was set back", () => {
  expect(around(SINCE + LIFE, () => ({ device: bound, cookieAt: SINCE }))).toEqual([
    "proven",
    "proven",
    "device_proof_missing",
  ]);
  expect(around(SINCE - LIFE, () => ({ device: bound, cookieAt: SINCE }))).toEqual([
    "device_proof_missing",
    "proven",
    "proven",
  ]);
});

test("without a device cookie a request passes for two reuse intervals after the binding", () => {
  const late = { device: bound, issuedAt: SINCE + 3 * R };
  expect(around(SINCE + 2 * R, () => late)).toEqual(["unproven", "unproven", "device_proof_missing"]);
  expect(around(SINCE - 2 * R, () => late)).toEqual(["device_proof_missing", "unproven", "unproven"]);
});

test("after that, a token from before the end of those two intervals shows that there are two holders", () => {
  const edge = SINCE + 2 * R;
  const verdicts = [-1, 0, 1].map((offset) => around(edge + R, () => ({ device: bound, issuedAt: edge + offset }))[1]);
  expect(verdicts).toEqual(["two_holders", "two_holders", "device_proof_missing"]);
});

test("a token may register a key if it is of the current generation, the next one, or the one before", () => {
  const may = [3, 4, 5, 6].map((generation) => mayRegister({ generation }, { generation: 5 }));
  expect(may).toEqual([false, true, true, true]);
});

const registered: DeviceBinding = { ...bound, state: "registered" };
const dpop: DeviceBinding = { key: { algorithm: "DPoP", thumbprint }, state: "bound", since: SINCE };
const proof = { thumbprint: thumbprintOf(bound) };
const otherProof = { thumbprint: "C".repeat(43) };
const otherCookie = { thumbprint: new Uint8Array(32), issuedAtMs: SINCE };
/** Both edges are far: the session's grace is over, and the key was bound long ago. */
const LATER = storeMs(SINCE + 100 * LIFE);

type Judged = Parameters<typeof judgeDevice>[0];
const judged = (
  session: Partial<Judged>,
  presented: Partial<DevicePresentation>,
  issuedAt: number = LATER,
  now = LATER,
) =>
  judgeDevice(
    { createdAt: CREATED, clientId: "app", ...session },
    { issuedAt: storeMs(issuedAt) },
    { ...NO_PRESENTATION, lifeMs: LIFE, ...presented },
    now,
    R,
  );

const byToken = { transport: "token" } as const;
const required = { deviceRequired: true } as const;

test.each<[string, Partial<Judged>, Partial<DevicePresentation>, string]>([
  ["a token of any transport, by cookie", {}, {}, "unproven"],
  ["a token of any transport, at the token endpoint", {}, byToken, "unproven"],
  ["a token of the token endpoint, by cookie", byToken, {}, "wrong_transport"],
  ["a token of the token endpoint there", byToken, byToken, "unproven"],
  ["a proof by cookie binds nothing", {}, { proof }, "unproven"],
  ["a proof binds nothing in a session that requires a device key", required, { proof, ...byToken }, "device_required"],
  ["a first proof of the session's client", {}, { proof, ...byToken, clientId: "app" }, "first_proof"],
  ["a first proof of a client without a name", {}, { proof, ...byToken }, "first_proof"],
  ["a first proof of another client", {}, { proof, ...byToken, clientId: "other" }, "wrong_client"],
  ["a proof of the bound key", { device: dpop }, { proof }, "held"],
  ["a proof of a key that is only registered", { device: registered }, { proof }, "first_use"],
  ["no proof of a key that each request proves", { device: dpop }, {}, "proof_missing"],
  ["a proof of another key", { device: dpop }, { proof: otherProof }, "other_key"],
  ["a registered key without its cookie", { device: registered }, {}, "unproven"],
  [
    "a registered key without its cookie, if one is required",
    { device: registered, ...required },
    {},
    "device_required",
  ],
  ["a bound key without its cookie, if one is required", { device: bound, ...required }, {}, "device_proof_missing"],
  ["a bound key with the cookie of another", { device: bound }, { cookie: otherCookie }, "device_proof_missing"],
])("%s: %4$s", (_, session, presented, verdict) => {
  expect(judged(session, presented)).toBe(verdict);
});

test("a session that requires a device key takes no proof in place of it, also before it must have the key", () => {
  expect(judged(required, { proof, ...byToken }, CREATED, CREATED)).toBe("unproven");
});

test("the first refresh with the cookie of a registered key uses it first", () => {
  expect(around(SINCE, () => ({ device: registered, cookieAt: SINCE }))[1]).toBe("first_use");
});

test("a browser that says that it could not renew its cookie is no second holder", () => {
  expect(judged({ device: bound }, {}, SINCE)).toBe("two_holders");
  expect(judged({ device: bound }, { skipped: true }, SINCE)).toBe("device_proof_missing");
});

test("a token from before the binding to a proven key shows two holders, two reuse intervals after it", () => {
  const at = (offset: number, issuedAt: number, device = dpop) =>
    judged({ device }, {}, issuedAt, storeMs(SINCE + offset));
  expect([2 * R, 2 * R + 1].map((offset) => at(offset, SINCE - 1))).toEqual(["proof_missing", "two_holders"]);
  expect([-2 * R, -2 * R - 1].map((offset) => at(offset, SINCE - 1))).toEqual(["proof_missing", "two_holders"]);
  expect(at(3 * R, SINCE)).toBe("proof_missing");
  // A session that was created with its key has no token from before.
  expect(at(3 * R, CREATED - 1, { ...dpop, since: CREATED })).toBe("proof_missing");
});

test.each([
  ["no key", undefined, SINCE, undefined, "allowed"],
  ["a device key", bound, SINCE, undefined, "allowed"],
  ["a proven key and a token from before its binding", dpop, SINCE - 1, undefined, "allowed"],
  ["a proven key without a proof", dpop, SINCE, undefined, "proof_missing"],
  ["a proven key and a proof of another", dpop, SINCE, otherProof, "other_key"],
  ["a proven key and its proof", dpop, SINCE, proof, "allowed"],
] as const)("the end of a session with %s: %5$s", (_, device, issuedAt, given, verdict) => {
  expect(judgeEnd({ device, createdAt: CREATED }, { issuedAt: storeMs(issuedAt) }, given)).toBe(verdict);
});

test("a key may be replaced if it has been registered for more than two reuse intervals and was never used", () => {
  const replaceable = (device: DeviceBinding) =>
    [-2 * R - 1, -2 * R, 2 * R, 2 * R + 1].map((offset) => isReplaceable(device, storeMs(SINCE + offset), R));
  expect(replaceable(registered)).toEqual([true, false, false, true]);
  expect(replaceable(bound)).toEqual([false, false, false, false]);
});

test("thumbprints are the same if all their bytes are", () => {
  const bytes = (byte: number) => Uint8Array.from([1, 2, byte]);
  expect(isSameThumbprint(bytes(3), bytes(3))).toBe(true);
  expect(isSameThumbprint(bytes(3), bytes(4))).toBe(false);
  expect(isSameThumbprint(bytes(3).subarray(0, 2), bytes(3))).toBe(false);
  expect(isSameThumbprint(bytes(3), bytes(3).subarray(0, 2))).toBe(false);
});

test.each([
  ["held", "repeat", "proven"],
  ["held", "rotate", "proven"],
  ["first_proof", "repeat", "unproven"],
  ["first_proof", "rotate", "first_use"],
  ["unproven", "rotate", "unproven"],
  ["first_use", "repeat", "first_use"],
] as const)("a refresh judged as %s that makes %s has shown %s", (verdict, outcome, shown) => {
  expect(provenBy(verdict, outcome)).toBe(shown);
});

test("a session is bound to its registered key, or to the key of the proof, never before it was created", () => {
  const session = { createdAt: CREATED };
  expect(boundKey({ ...session, device: registered }, NO_PRESENTATION, LATER)).toEqual({ ...bound, since: LATER });
  expect(boundKey(session, { ...NO_PRESENTATION, proof }, LATER)).toEqual({ ...dpop, since: LATER });
  expect(boundKey(session, { ...NO_PRESENTATION, proof }, storeMs(CREATED - 1))).toEqual({ ...dpop, since: CREATED });
  expect(() => boundKey(session, NO_PRESENTATION, LATER)).toThrow("there is no key to bind");
});
