/** What registration, renewal and removal of a device key do for every outcome of the store and every proof. */
import { expect, test } from "vitest";
import { registerDevice, renewDevice, unbindDevice } from "../../../../src/service/session/devices/device.ts";
import { type DeviceKey, thumbprintBytes } from "../../../../src/service/session/devices/key.ts";
import type { DeviceChallengeCheck, DeviceProofResult } from "../../../../src/service/session/devices/ports.ts";
import { type DeviceTools, NEVER_FRESH } from "../../../../src/service/session/devices/presented.ts";
import type { Session } from "../../../../src/service/session/model.ts";
import type { RegisterKeyOutcome } from "../../../../src/service/session/ports.ts";
import type { AuthenticTokens } from "../../../../src/service/session/rotation/presented-cookie.ts";
import { storeMs } from "../../../../src/service/session/time.ts";
import { deviceTools } from "../../../support/device-tools.ts";
import { findOf, NOW, REQUESTER, SID, script, sessionOf, sidOf, tokenOf } from "../../../support/session/scripted.ts";

const THUMBPRINT = `${"B".repeat(42)}A`;
const KEY: DeviceKey = { algorithm: "ES256", bytes: new Uint8Array(64), thumbprint: thumbprintBytes(THUMBPRINT) };
const BOUND = sessionOf({ device: { key: KEY, state: "bound", since: NOW } });
const OTHER = sidOf("b");
/** The time at which challenges are issued and checked. The store's reply has another one. */
const ASKED = storeMs(NOW + 7);
const CHALLENGE = `challenge ${SID} ${ASKED}`;
const PROVEN: DeviceProofResult = { ok: true, key: KEY, challenge: "of the proof" };
const REQUIRED = { ok: false, reason: "proof_required", sid: SID, challenge: CHALLENGE };
const GRANTED = {
  ok: true,
  cookie: `cookie ${SID} ${THUMBPRINT} ${NOW}`,
  mark: `cookie ${SID} ${THUMBPRINT} ${NEVER_FRESH}`,
  challenge: CHALLENGE,
};

function toolsFor(proof: DeviceProofResult, check: DeviceChallengeCheck = { ok: true }) {
  const asked: unknown[] = [];
  const tools: DeviceTools = deviceTools(() => ASKED, {
    verifyProof: (...given) => {
      asked.push(given);
      return proof;
    },
    challenges: {
      issue: (sid, now) => `challenge ${sid} ${now}`,
      check: (...given) => {
        asked.push(given);
        return check;
      },
    },
    cookies: {
      issue: (sid, thumbprint, at) => `cookie ${sid} ${Buffer.from(thumbprint).toString("base64url")} ${at}`,
      read: () => ({ ok: false, reason: "malformed" }),
    },
  });
  return { tools, asked };
}

type Refusal = Extract<RegisterKeyOutcome, { readonly ok: false }>["reason"];

async function register(outcome: RegisterKeyOutcome, jwt: string | undefined, given = toolsFor(PROVEN)) {
  const port = script({ registerKey: async () => outcome });
  const result = await registerDevice(port, given.tools, [tokenOf()], jwt, REQUESTER);
  return { result, ...port, events: port.stepsOf("audit").flat(), asked: given.asked };
}

test("a registered key has a cookie, a mark and the next challenge", async () => {
  const { result, stepsOf, events, asked } = await register({ ok: true, session: BOUND, now: NOW }, "proof");
  expect(result).toEqual({ ...GRANTED, session: BOUND });
  expect(stepsOf("registerKey")).toEqual([[SID, tokenOf(), KEY]]);
  expect(asked).toEqual([
    ["proof", { kind: "registration" }],
    ["of the proof", SID, ASKED],
  ]);
  expect(events).toEqual([
    { event: "device_registered", sid: SID, subject: "alice", algorithm: "ES256", thumbprint: THUMBPRINT },
  ]);
});

test.each<[Refusal, object, readonly object[]]>([
  ["unknown", { ok: false, reason: "unknown_session", sid: SID }, []],
  ["revoked", { ok: false, reason: "revoked", sid: SID }, []],
  ["other_key", REQUIRED, [{ event: "device_key_refused", sid: SID, thumbprint: THUMBPRINT, reason: "other_key" }]],
  ["outdated", REQUIRED, [{ event: "device_key_refused", sid: SID, thumbprint: THUMBPRINT, reason: "outdated" }]],
])("a registration of which the store says %s is refused", async (reason, expected, expectedEvents) => {
  const { result, events } = await register({ ok: false, reason }, "proof");
  expect(result).toEqual(expected);
  expect(events).toEqual(expectedEvents);
});

/** The proofs that are refused, and the reason that is recorded. */
const REFUSED_PROOFS: readonly [string, ReturnType<typeof toolsFor>, string | undefined, string | undefined][] = [
  ["no proof", toolsFor(PROVEN), undefined, undefined],
  ...(["malformed", "wrong_type", "wrong_algorithm", "bad_key", "other_key", "forged"] as const).map(
    (reason): [string, ReturnType<typeof toolsFor>, string, string] => [
      `a proof that is refused as ${reason}`,
      toolsFor({ ok: false, reason }),
      "proof",
      reason,
    ],
  ),
  ...(["malformed", "unknown_key", "forged", "other_session", "expired"] as const).map(
    (reason): [string, ReturnType<typeof toolsFor>, string, string] => [
      `a challenge that is refused as ${reason}`,
      toolsFor(PROVEN, { ok: false, reason }),
      "proof",
      `challenge_${reason}`,
    ],
  ),
];

test.each(REFUSED_PROOFS)(
  "with %s, nothing is registered or renewed, and a challenge is returned",
  async (_, given, jwt, reason) => {
    const refusedAt = (operation: string) =>
      reason === undefined ? [] : [{ event: "device_proof_refused", sid: SID, operation, reason }];
    const port = script({ find: findOf(BOUND) });
    expect(await registerDevice(port, given.tools, [tokenOf()], jwt, REQUESTER)).toEqual(REQUIRED);
    expect(port.steps.map(([, event]) => event)).toEqual(refusedAt("RegisterDevice"));
    const renewal = script({ find: findOf(BOUND) });
    const presented: AuthenticTokens = { ok: true, tokens: [tokenOf()] };
    expect(await renewDevice(renewal, given.tools, presented, SID, jwt, REQUESTER)).toEqual(REQUIRED);
    expect(renewal.stepsOf("audit").flat()).toEqual(refusedAt("RenewDevice"));
  },
);

test("a registration with tokens of two subjects is refused", async () => {
  const port = script({ find: findOf(sessionOf(), sessionOf({ sid: OTHER, subject: "mallory" })) });
  const { tools } = toolsFor(PROVEN);
  const result = await registerDevice(port, tools, [tokenOf(), tokenOf(OTHER)], "proof", REQUESTER);
  expect(result).toEqual({ ok: false, reason: "ambiguous" });
});

test("a renewal proves the session's key, and has a new cookie", async () => {
  const { tools, asked } = toolsFor(PROVEN);
  const port = script({ find: findOf(BOUND) });
  const result = await renewDevice(port, tools, { ok: true, tokens: [tokenOf()] }, undefined, "proof", REQUESTER);
  expect(result).toEqual({ ...GRANTED, session: BOUND });
  expect(asked[0]).toEqual(["proof", { kind: "renewal", key: KEY }]);
  expect(port.stepsOf("audit").flat()).toEqual([{ event: "device_renewed", sid: SID, subject: "alice" }]);
});

const NOTHING = { ok: false, reason: "nothing_to_renew" };
const PROOF_KEY = { algorithm: "DPoP", thumbprint: KEY.thumbprint } as const;

test.each<[string, string | undefined, readonly Session[]]>([
  ["a session without a key", undefined, [sessionOf()]],
  [
    "a session with a key that each request proves",
    undefined,
    [sessionOf({ device: { key: PROOF_KEY, state: "bound", since: NOW } })],
  ],
  ["a session that has ended", undefined, []],
  ["a session of which the request has no token", OTHER, [BOUND]],
])("%s has nothing to renew", async (_, named, sessions) => {
  const port = script({ find: findOf(...sessions) });
  const { tools } = toolsFor(PROVEN);
  expect(await renewDevice(port, tools, { ok: true, tokens: [tokenOf()] }, named, "proof", REQUESTER)).toEqual(NOTHING);
  expect(port.stepsOf("audit")).toEqual([]);
});

test("of two sessions, the one that the browser names is renewed", async () => {
  const older = { ...BOUND, sid: OTHER, createdAt: storeMs(NOW - 1) };
  const port = script({ find: findOf(BOUND, older) });
  const { tools } = toolsFor(PROVEN);
  const tokens = [tokenOf(), tokenOf(OTHER)] as const;
  const result = await renewDevice(port, tools, { ok: true, tokens }, OTHER, "proof", REQUESTER);
  expect(result).toMatchObject({ ok: true, session: older });
});

test.each([
  ["absent", "nothing_to_renew"],
  ["forged", "nothing_to_renew"],
  ["malformed", "nothing_to_renew"],
  ["unknown_key", "undecided"],
  ["ambiguous", "undecided"],
] as const)("a renewal whose token is %s is refused as %s", async (reason, expected) => {
  const port = script({});
  const { tools } = toolsFor(PROVEN);
  const result = await renewDevice(port, tools, { ok: false, reason }, SID, "proof", REQUESTER);
  expect(result).toEqual({ ok: false, reason: expected });
  expect(port.steps).toEqual([["audit", { event: "authn_failed", operation: "RenewDevice", reason }]]);
});

test.each([
  ["a key", { ok: true, session: BOUND, hadKey: true }, [{ event: "device_unbound", sid: SID, subject: "alice" }]],
  ["no key", { ok: true, session: BOUND, hadKey: false }, []],
  ["ended", { ok: false, reason: "revoked" }, []],
  ["been forgotten", { ok: false, reason: "unknown" }, []],
] as const)("the removal of the key of a session that has %s", async (_, outcome, events) => {
  const port = script({ unbind: async () => outcome });
  expect(await unbindDevice(port, SID, REQUESTER)).toBe(outcome.ok ? BOUND : undefined);
  expect(port.stepsOf("audit").flat()).toEqual(events);
});
