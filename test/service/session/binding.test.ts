/** The edges of the times by which device binding decides. The scripts of Redis decide by the same ones. */
import { expect, test } from "vitest";
import { type DevicePresentation, judgeDevice, mayRegister } from "../../../src/service/session/devices/binding.ts";
import { type DeviceBinding, thumbprintBytes } from "../../../src/service/session/devices/key.ts";
import { type StoreMs, storeMs } from "../../../src/service/session/time.ts";

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
  expect(around(CREATED + LIFE, () => ({ required: true }))).toEqual(["unproven", "unproven", "required"]);
});

test("a device cookie proves the key for its life, also if a clock was set back", () => {
  expect(around(SINCE + LIFE, () => ({ device: bound, cookieAt: SINCE }))).toEqual(["proven", "proven", "missing"]);
  expect(around(SINCE - LIFE, () => ({ device: bound, cookieAt: SINCE }))).toEqual(["missing", "proven", "proven"]);
});

test("without a device cookie a request passes for two reuse intervals after the binding", () => {
  const late = { device: bound, issuedAt: SINCE + 3 * R };
  expect(around(SINCE + 2 * R, () => late)).toEqual(["unproven", "unproven", "missing"]);
  expect(around(SINCE - 2 * R, () => late)).toEqual(["missing", "unproven", "unproven"]);
});

test("after that, a token from before the end of those two intervals shows that there are two holders", () => {
  const edge = SINCE + 2 * R;
  const verdicts = [-1, 0, 1].map((offset) => around(edge + R, () => ({ device: bound, issuedAt: edge + offset }))[1]);
  expect(verdicts).toEqual(["two_holders", "two_holders", "missing"]);
});

test("a token may register a key if it is of the current generation, the next one, or the one before", () => {
  const may = [3, 4, 5, 6].map((generation) => mayRegister({ generation }, { generation: 5 }));
  expect(may).toEqual([false, true, true, true]);
});
