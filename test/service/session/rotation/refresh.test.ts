/** What a refresh does for every outcome of the store: what it returns, what it records, and what it counts. */
import { expect, test } from "vitest";
import { withFirstTokens } from "../../../../src/service/session/admin/create.ts";
import { thumbprintBytes } from "../../../../src/service/session/devices/key.ts";
import type { DeviceHeaders, DeviceTools } from "../../../../src/service/session/devices/presented.ts";
import { NEVER_FRESH } from "../../../../src/service/session/devices/presented.ts";
import type { Session } from "../../../../src/service/session/model.ts";
import { type RotateOutcome, StoreUnavailable } from "../../../../src/service/session/ports.ts";
import type { PresentedTokens } from "../../../../src/service/session/rotation/presented-cookie.ts";
import { peekRefreshLimit, refresh } from "../../../../src/service/session/rotation/refresh.ts";
import { storeMs } from "../../../../src/service/session/time.ts";
import { deviceTools } from "../../../support/device-tools.ts";
import {
  accessTokens,
  FRESH_NONCE,
  findOf,
  limitOf,
  NOW,
  ORIGIN,
  RANDOM,
  REFRESH_TOKENS,
  REQUESTER,
  SID,
  script,
  sessionOf,
  sidOf,
  tokenOf,
} from "../../../support/session/scripted.ts";

const CHILD = { generation: 4, nonce: "child-nonce", issuedAt: NOW };
const THUMBPRINT = "A".repeat(43);
const DPOP = {
  key: { algorithm: "DPoP", thumbprint: thumbprintBytes(THUMBPRINT) },
  state: "bound",
  since: NOW,
} as const;
const DEVICE = {
  key: { algorithm: "ES256", bytes: new Uint8Array(64), thumbprint: thumbprintBytes(THUMBPRINT) },
  state: "bound",
  since: NOW,
} as const;

type Served = Extract<RotateOutcome, { readonly ok: true }>;
const served = (more: Partial<Served> = {}): Served => ({
  ok: true,
  outcome: "rotate",
  session: sessionOf(),
  child: CHILD,
  now: NOW,
  device: "unproven",
  ...more,
});

const tools = (more: Partial<DeviceTools> = {}) =>
  deviceTools(() => NOW, {
    challenges: { issue: (sid) => `challenge of ${sid}`, check: () => ({ ok: true }) },
    cookies: {
      issue: () => "",
      read: (value) => ({ ok: true, sid: SID, thumbprint: new Uint8Array(32), issuedAtMs: storeMs(Number(value)) }),
    },
    ...more,
  });

type Case = {
  readonly rotated: RotateOutcome;
  readonly tokens?: PresentedTokens;
  readonly deviceHeaders?: DeviceHeaders;
  readonly request?: Parameters<typeof refresh>[4];
  readonly device?: DeviceTools;
  /** Collects the sessions for which access tokens are issued. */
  readonly issued?: Session[];
};

async function run({ rotated, tokens = [tokenOf()], deviceHeaders, request, device = tools(), issued = [] }: Case) {
  const port = script({ rotate: async () => rotated });
  const refreshLimit = limitOf();
  const deps = { ...port, refreshTokens: REFRESH_TOKENS, accessTokens: accessTokens(), random: RANDOM };
  const issue: typeof deps.accessTokens.issue = (session, ...more) => {
    issued.push(session);
    return deps.accessTokens.issue(session, ...more);
  };
  const given = { ...deps, accessTokens: { issue }, refreshLimit, device };
  const result = await refresh(given, tokens, REQUESTER, deviceHeaders, request);
  expect([...port.requesters].every((each) => each === REQUESTER)).toBe(true);
  return { result, refreshLimit, ...port, events: port.stepsOf("audit").flat() };
}

test.each(["rotate", "heal", "recover"] as const)(
  "%s returns the tokens, and a challenge to register",
  async (outcome) => {
    const { result, events, stepsOf } = await run({ rotated: served({ outcome }) });
    expect(result).toMatchObject({
      ok: true,
      sid: SID,
      secondsLeft: 60,
      isKeyBound: false,
      offer: `challenge of ${SID}`,
    });
    expect(result.ok && JSON.parse(result.refreshToken)).toEqual({ sid: SID, ...CHILD });
    expect(result.ok && JSON.parse(result.accessToken.token)).toEqual({ sid: SID, now: NOW, deviceProven: false });
    expect(events).toEqual([{ event: "session_renewed", sid: SID, subject: "alice", outcome }]);
    expect(stepsOf("rotate")).toEqual([
      [SID, tokenOf(), FRESH_NONCE, { lifeMs: 300_000, cookie: undefined, skipped: false }, undefined],
    ]);
  },
);

test("repeat returns the same tokens without a challenge, because another request has one", async () => {
  const { result } = await run({ rotated: served({ outcome: "repeat" }) });
  expect(result).toMatchObject({ ok: true, sid: SID });
  expect(result.ok && result.offer).toBeUndefined();
  expect(result.ok && JSON.parse(result.refreshToken)).toEqual({ sid: SID, ...CHILD });
});

test("the first use of a device key is recorded before the refresh", async () => {
  const { result, events } = await run({
    rotated: served({ device: "first_use", session: sessionOf({ device: DEVICE }) }),
  });
  expect(result.ok && JSON.parse(result.accessToken.token)).toMatchObject({ deviceProven: true });
  // A device key is not one that each request proves, and the session offers no registration of another.
  expect(result).toMatchObject({ isKeyBound: false, offer: undefined });
  expect(events).toEqual([
    { event: "device_bound", sid: SID, subject: "alice", algorithm: "ES256", thumbprint: THUMBPRINT },
    { event: "session_renewed", sid: SID, subject: "alice", outcome: "rotate" },
  ]);
});

test("the first proof of a key is recorded, although the request asks for an audience that the session does not have", async () => {
  const { result, events } = await run({
    rotated: served({ device: "first_use", session: sessionOf({ device: DPOP }) }),
    request: { clientId: "web", proof: { thumbprint: THUMBPRINT }, resources: ["https://elsewhere.example"] },
  });
  expect(result).toEqual({ ok: false, reason: "invalid_target" });
  expect(events).toMatchObject([{ event: "device_bound", algorithm: "DPoP", thumbprint: THUMBPRINT }]);
});

test("a later use of a device key is not recorded, and such a key has no count of its own", async () => {
  const device = tools();
  const session = sessionOf({ device: DEVICE });
  const { events } = await run({ rotated: served({ device: "proven", session }), device });
  expect(events).toMatchObject([{ event: "session_renewed" }]);
  expect(device.sessionKeys.get(SID)).toBeUndefined();
});

test.each<[string, Partial<Session>, boolean]>([
  ["until it expires", {}, true],
  ["until they are closed, if it is not persistent", { persistent: false }, false],
])("browsers keep a session's cookies %s", async (_, more, isPersistent) => {
  const session = sessionOf(more);
  expect((await run({ rotated: served({ session }) })).result).toMatchObject({ secondsLeft: 60, isPersistent });
  const created = withFirstTokens(
    { refreshTokens: REFRESH_TOKENS, accessTokens: accessTokens() },
    session,
    "nonce",
    NOW,
  );
  expect(created).toMatchObject({ secondsLeft: 60, isPersistent });
});

test("a session with a key that each request proves has tokens that are bound to it", async () => {
  const device = tools();
  const request = { clientId: "web", proof: { thumbprint: THUMBPRINT } };
  const { result, refreshLimit, stepsOf } = await run({
    rotated: served({ session: sessionOf({ device: DPOP }), device: "proven" }),
    request,
    device,
  });
  expect(result).toMatchObject({ ok: true, isKeyBound: true });
  expect(stepsOf("rotate")[0]?.[3]).toEqual({
    lifeMs: 300_000,
    cookie: undefined,
    skipped: false,
    transport: "token",
    proof: { thumbprint: THUMBPRINT },
    clientId: "web",
  });
  // The key is known from now on, so that its refreshes have a count of their own.
  expect(refreshLimit.counted).toEqual([SID]);
  expect(device.sessionKeys.get(SID)).toBe(THUMBPRINT);
  expect((await run({ rotated: served(), request, device })).refreshLimit.counted).toEqual([`${SID}+${THUMBPRINT}`]);
});

test("another client at the token endpoint is refused after a rotation that does no harm", async () => {
  const { result, events } = await run({ rotated: served(), request: { clientId: "other" } });
  expect(result).toEqual({ ok: false, reason: "wrong_client", sid: SID });
  expect(events).toEqual([]);
  expect((await run({ rotated: served(), request: { clientId: "web" } })).result.ok).toBe(true);
});

const ended = { event: "session_ended", sid: SID, subject: "alice", reason: "reuse" };
const missing = { ok: false, reason: "device_proof_missing", session: sessionOf() } as const;
const keyMissing = (reason: string) => ({
  event: "bound_key_missing",
  sid: SID,
  subject: "alice",
  operation: "refresh",
  reason,
});

test.each<[string, Case, object, readonly object[]]>([
  [
    "a reused token ends the session",
    { rotated: { ok: false, reason: "reuse", subject: "alice" } },
    { ok: false, reason: "reuse", sid: SID },
    [{ event: "authn_token_reuse", sid: SID, subject: "alice" }, ended],
  ],
  [
    "two holders end the session",
    { rotated: { ok: false, reason: "two_holders", subject: "alice" } },
    { ok: false, reason: "two_holders", sid: SID },
    [{ event: "authn_token_reuse", sid: SID, subject: "alice", cause: "two_holders" }, ended],
  ],
  [
    "no device cookie is refused",
    { rotated: missing },
    { ok: false, reason: "device_proof_missing", sid: SID },
    [{ event: "device_proof_missing", sid: SID, subject: "alice" }],
  ],
  [
    "the mark alone is refused like no device cookie",
    { rotated: missing, deviceHeaders: { cookies: [String(NEVER_FRESH)], skipped: [] } },
    { ok: false, reason: "device_proof_missing", sid: SID },
    [{ event: "device_proof_missing", sid: SID, subject: "alice" }],
  ],
  [
    "a stale device cookie asks to try again",
    { rotated: missing, deviceHeaders: { cookies: [String(NOW - 1_000_000)], skipped: [] } },
    { ok: false, reason: "device_cookie_stale" },
    [{ event: "device_proof_missing", sid: SID, subject: "alice" }],
  ],
  [
    "a skipped renewal asks to try again, with a stale device cookie, too",
    { rotated: missing, deviceHeaders: { cookies: [String(NOW - 1_000_000)], skipped: [SID] } },
    { ok: false, reason: "device_renewal_skipped" },
    [{ event: "device_renewal_skipped", sid: SID, subject: "alice" }],
  ],
  [
    "a skipped renewal of another session changes nothing",
    { rotated: missing, deviceHeaders: { cookies: [], skipped: [sidOf("b")] } },
    { ok: false, reason: "device_proof_missing", sid: SID },
    [{ event: "device_proof_missing", sid: SID, subject: "alice" }],
  ],
  ...(["proof_missing", "other_key"] as const).map((reason): [string, Case, object, readonly object[]] => [
    `${reason} is refused`,
    { rotated: { ok: false, reason, session: sessionOf({ device: DPOP }) } },
    { ok: false, reason, sid: SID },
    [keyMissing(reason)],
  ]),
  [
    "a required key is offered",
    { rotated: { ok: false, reason: "device_required", session: sessionOf() } },
    { ok: false, reason: "device_required", sid: SID, offer: `challenge of ${SID}` },
    [],
  ],
  [
    "a required key is not offered where keys are not",
    {
      rotated: { ok: false, reason: "device_required", session: sessionOf() },
      device: tools({ offers: false }),
    },
    { ok: false, reason: "device_required", sid: SID },
    [],
  ],
  [
    "an unknown session has a reason of its own",
    { rotated: { ok: false, reason: "unknown" } },
    { ok: false, reason: "unknown_session", sid: SID },
    [],
  ],
  ...(["revoked", "idle", "expired", "wrong_transport", "wrong_client"] as const).map(
    (reason): [string, Case, object, readonly object[]] => [
      `${reason} is refused`,
      { rotated: { ok: false, reason } },
      { ok: false, reason, sid: SID },
      [],
    ],
  ),
])("%s", async (_, given, expected, expectedEvents) => {
  const { result, events } = await run(given);
  expect(result).toEqual(expected);
  expect(events).toEqual(expectedEvents);
});

test("the key of a refused proof is noted, so that the owner's refreshes have a count of their own", async () => {
  const device = tools();
  await run({ rotated: { ok: false, reason: "other_key", session: sessionOf({ device: DPOP }) }, device });
  expect(device.sessionKeys.get(SID)).toBe(THUMBPRINT);
});

test("over the limit, the store is not asked", async () => {
  const port = script({});
  const deps = { ...port, refreshTokens: REFRESH_TOKENS, accessTokens: accessTokens(), random: RANDOM };
  const result = await refresh({ ...deps, refreshLimit: limitOf(4_200), device: tools() }, [tokenOf()], REQUESTER);
  expect(result).toEqual({ ok: false, reason: "rate_limited", limit: "refresh", retryAfterMs: 4_200 });
  expect(port.steps).toEqual([["audit", { event: "rate_limited", limit: "refresh", sid: SID }]]);
});

test("a refresh to which the store did not reply does not count", async () => {
  const outage = new StoreUnavailable("away");
  const port = script({
    rotate: async () => {
      throw outage;
    },
  });
  const refreshLimit = limitOf();
  const deps = { ...port, refreshTokens: REFRESH_TOKENS, accessTokens: accessTokens(), random: RANDOM };
  await expect(refresh({ ...deps, refreshLimit, device: tools() }, [tokenOf()], REQUESTER)).rejects.toBe(outage);
  expect(refreshLimit.counted).toEqual([]);
  expect(port.stepsOf("audit")).toEqual([]);
});

test.each([
  ["none", [], SID],
  ["a fresh one", [NOW], `${SID}+`],
  ["one at the end of its life", [NOW - 300_000], `${SID}+`],
  ["a stale one", [NOW - 300_001], SID],
  ["one as far in the future", [NOW + 300_000], `${SID}+`],
  ["one of the future", [NOW + 300_001], SID],
  ["the mark", [NEVER_FRESH], SID],
  ["a fresh one before an older one", [NOW, NOW - 400_000], `${SID}+`],
])("with the device cookie %s, the refresh counts under its key", async (_, cookies, key) => {
  const deviceHeaders = { cookies: cookies.map(String), skipped: [] };
  expect((await run({ rotated: served(), deviceHeaders })).refreshLimit.counted).toEqual([key]);
});

test.each<[string, DeviceTools["cookies"]["read"]]>([
  ["of another session", () => ({ ok: true, sid: sidOf("b"), thumbprint: new Uint8Array(32), issuedAtMs: NOW })],
  ["that is forged", () => ({ ok: false, reason: "forged" })],
])("a device cookie %s is ignored", async (_, read) => {
  const device = tools({ cookies: { issue: () => "", read } });
  const { stepsOf, refreshLimit } = await run({
    rotated: served(),
    deviceHeaders: { cookies: ["one"], skipped: [] },
    device,
  });
  expect(stepsOf("rotate")[0]?.[3]).toMatchObject({ cookie: undefined });
  expect(refreshLimit.counted).toEqual([SID]);
});

test("of several device cookies the newest counts, and of equally new ones the first", async () => {
  const thumbprints: Readonly<Record<string, number>> = { old: 1, new: 2, twin: 3 };
  const read: DeviceTools["cookies"]["read"] = (value) => ({
    ok: true,
    sid: SID,
    thumbprint: new Uint8Array([thumbprints[value] ?? 0]),
    issuedAtMs: value === "old" ? storeMs(NOW - 1) : NOW,
  });
  const device = tools({ cookies: { issue: () => "", read } });
  for (const cookies of [
    ["old", "new", "twin"],
    ["new", "old", "twin"],
    ["new", "twin", "old"],
  ]) {
    const { stepsOf } = await run({ rotated: served(), deviceHeaders: { cookies, skipped: [] }, device });
    expect(stepsOf("rotate")[0]?.[3]).toMatchObject({ cookie: { thumbprint: new Uint8Array([2]) } });
  }
});

test("of tokens of two sessions the newest is refreshed, and the older session ends", async () => {
  const older = sessionOf({ sid: sidOf("b"), createdAt: storeMs(NOW - 1) });
  const dead = sidOf("c");
  const port = script({
    rotate: async () => served(),
    find: findOf(older, sessionOf()),
    endOwned: async (_, target) => (target === older.sid ? { ok: true } : { ok: false, reason: "not_found" }),
  });
  const deps = { ...port, refreshTokens: REFRESH_TOKENS, accessTokens: accessTokens(), random: RANDOM };
  const tokens = [tokenOf(dead), tokenOf(older.sid), tokenOf()] as const;
  const result = await refresh({ ...deps, refreshLimit: limitOf(), device: tools() }, tokens, REQUESTER);
  expect(result).toMatchObject({ ok: true, sid: SID });
  expect(port.stepsOf("endOwned")).toEqual([
    [SID, older.sid, "replaced", ORIGIN],
    [SID, dead, "replaced", ORIGIN],
  ]);
  expect(port.stepsOf("audit").flat()).toEqual([
    { event: "session_renewed", sid: SID, subject: "alice", outcome: "rotate" },
    { event: "session_ended", sid: older.sid, subject: "alice", reason: "replaced" },
  ]);
});

test.each([
  [[], [["orders", "billing"]]],
  [["billing"], ["billing"]],
  [["billing", "billing"], ["billing"]],
  [["billing", "orders"], [["billing", "orders"]]],
  [["billing", "other"], []],
])("at the token endpoint, who asks for %j gets a token for %j", async (resources, audiences) => {
  const issued: Session[] = [];
  const rotated = served({ session: sessionOf({ audience: ["orders", "billing"] }) });
  const { result } = await run({ rotated, request: { clientId: "web", resources }, issued });
  expect([result.ok, issued.map(({ audience }) => audience)]).toEqual([audiences.length > 0, audiences]);
});

test("tokens of two subjects are refused, and nothing is rotated or counted", async () => {
  const port = script({ find: findOf(sessionOf({ sid: sidOf("b"), subject: "mallory" }), sessionOf()) });
  const deps = { ...port, refreshTokens: REFRESH_TOKENS, accessTokens: accessTokens(), random: RANDOM };
  const refreshLimit = limitOf();
  const tokens = [tokenOf(sidOf("b")), tokenOf()] as const;
  const result = await refresh({ ...deps, refreshLimit, device: tools() }, tokens, REQUESTER);
  expect(result).toEqual({ ok: false, reason: "ambiguous" });
  expect(refreshLimit.counted).toEqual([]);
  expect(port.stepsOf("audit")).toEqual([]);
});

test.each<[string, number | undefined, PresentedTokens, boolean, boolean]>([
  ["within the limit", undefined, [tokenOf()], false, false],
  ["over the limit", 100, [tokenOf()], false, true],
  ["over the limit with a key, which has a limit of its own", 100, [tokenOf()], true, false],
  [
    "with tokens of two sessions, of which only the store knows the newer",
    100,
    [tokenOf(), tokenOf(sidOf("b"))],
    false,
    false,
  ],
])(
  "before its message is read, a refresh %s is refused or not",
  (_, retryAfterMs, tokens, presentsDevice, isRefused) => {
    const { audit, steps } = script({});
    const limit = { peek: () => retryAfterMs };
    const result = peekRefreshLimit({ refreshLimit: limit, audit }, tokens, () => presentsDevice, REQUESTER);
    expect(result).toEqual(
      isRefused ? { ok: false, reason: "rate_limited", limit: "refresh", retryAfterMs } : undefined,
    );
    expect(steps).toEqual(isRefused ? [["audit", { event: "rate_limited", limit: "refresh", sid: SID }]] : []);
  },
);
