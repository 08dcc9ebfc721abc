import { chmodSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { loadSessionPolicies, parseSessionPolicies } from "../../../src/service/config/session-policies.ts";
import { SettingsFileFault } from "../../../src/service/config/settings-file.ts";
import { scratch } from "../../support/service.ts";

const limits = (...entries: unknown[]) => JSON.stringify({ limits: entries });
const exchanges = (...entries: unknown[]) => JSON.stringify({ token_exchange: entries });
const EXCHANGE = { client_id: "gateway", subject_token_audiences: ["https://gateway.example"] };

test("an entry counts what it names, unless it says otherwise", () => {
  const text = limits(
    { client_id: "web", max_sessions: 5, when_exceeded: "REFUSE" },
    { client_kind: "BROWSER", max_sessions: 3 },
    { client_id: "tv", client_kind: "TV", scope: "CLIENT_KIND", max_sessions: 1, when_exceeded: "END_OLDEST" },
    { client_id: "kiosk", scope: "SUBJECT", max_sessions: 100 },
    { max_sessions: 10 },
  );
  const limit = (scope: string, maxSessions: number, whenExceeded = "end_least_recently_used") => ({
    ...{ scope, maxSessions, whenExceeded },
  });
  expect(parseSessionPolicies(text)).toEqual({
    limits: [
      { clientId: "web", limit: limit("client_id", 5, "refuse") },
      { clientKind: "browser", limit: limit("client_kind", 3) },
      { clientId: "tv", clientKind: "tv", limit: limit("client_kind", 1, "end_oldest") },
      { clientId: "kiosk", limit: limit("subject", 100) },
      { limit: limit("subject", 10) },
    ],
    tokenExchange: [],
  });
  expect(parseSessionPolicies("{}")).toEqual({ limits: [], tokenExchange: [] });
});

test("a client that exchanges tokens may do what its entry says, and no more", () => {
  const full = {
    ...{ ...EXCHANGE, audiences: ["orders"], claims: ["role"], max_lifetime: "1m" },
    ...{ may_act: ["agent-*"], may_rebind: true },
  };
  const seconds = { ...EXCHANGE, client_id: "orders", max_lifetime: 90 };
  const base = { clientId: "gateway", subjectTokenAudiences: ["https://gateway.example"] };
  expect(parseSessionPolicies(exchanges(full, seconds)).tokenExchange).toEqual([
    { ...base, audiences: ["orders"], claims: ["role"], maxLifetimeMs: 60_000, mayAct: ["agent-*"], mayRebind: true },
    { ...base, clientId: "orders", claims: [], maxLifetimeMs: 90_000, mayAct: [], mayRebind: false },
  ]);
});

describe("a file that is wrong is refused, with the place, and no value is repeated", () => {
  const SECRET = "not-to-be-repeated";
  test.each<[string, string]>([
    ["the file: must be JSON", `{"${SECRET}`],
    ["the file: must be an object", "[]"],
    ['the file: "limit" is not known (known: limits)', '{"limit":[]}'],
    ["token_exchange: must be a list", '{"token_exchange":{}}'],
    ["token_exchange[0]: must be an object", exchanges(SECRET)],
    ['token_exchange[0]: "audience" is not known (known: audiences)', exchanges({ audience: [SECRET] })],
    ["token_exchange[0].client_id: is required", exchanges({ subject_token_audiences: ["a"] })],
    ["token_exchange[0].subject_token_audiences: must have an entry", exchanges({ client_id: SECRET })],
    ["token_exchange[0].audiences: must have an entry", exchanges({ ...EXCHANGE, audiences: [] })],
    ["token_exchange[0].audiences: must be a list", exchanges({ ...EXCHANGE, audiences: SECRET })],
    ["token_exchange[0].claims[1]: must be a text of 1 to 255 bytes", exchanges({ ...EXCHANGE, claims: ["a", ""] })],
    ["token_exchange[0].claims: has more than 100 entries", exchanges({ ...EXCHANGE, claims: Array(101).fill("a") })],
    ["token_exchange[0].may_act[0]: must be a text of 1 to 255 bytes", exchanges({ ...EXCHANGE, may_act: [1] })],
    ["token_exchange[0].may_rebind: must be true or false", exchanges({ ...EXCHANGE, may_rebind: SECRET })],
    ...["0", "25h", SECRET, null, [], {}].map((max_lifetime): [string, string] => [
      "token_exchange[0].max_lifetime: ",
      exchanges({ ...EXCHANGE, max_lifetime }),
    ]),
    ["token_exchange[1].client_id: is there twice", exchanges(EXCHANGE, EXCHANGE)],
    ["limits: must be a list", '{"limits":{}}'],
    ["limits: has more than 100 entries", limits(...Array(101).fill({ max_sessions: 1 }))],
    ["limits[0]: must be an object", limits(SECRET)],
    ['limits[1]: "max_session" is not known (known: max_sessions)', limits({ max_sessions: 1 }, { max_session: 1 })],
    [`limits[0]: "${"x".repeat(40)}" is not known (known: client_id, client_kind, `, limits({ ["x".repeat(99)]: 1 })],
    ["limits[0].max_sessions: must be a whole number from 1 to 100", limits({ client_id: SECRET })],
    ...[0, 101, 1.5, "5", null].map((max_sessions): [string, string] => [
      "limits[0].max_sessions: must be a whole number from 1 to 100",
      limits({ max_sessions }),
    ]),
    ["limits[0].client_kind: must be one of BROWSER, MOBILE, ", limits({ client_kind: SECRET, max_sessions: 1 })],
    ["limits[0].scope: must be one of SUBJECT, CLIENT_ID, CLIENT_KIND", limits({ scope: SECRET, max_sessions: 1 })],
    ["limits[0].when_exceeded: must be one of ", limits({ when_exceeded: SECRET, max_sessions: 1 })],
    ["limits[0].client_id: must be a text of 1 to 255 bytes", limits({ client_id: "", max_sessions: 1 })],
    ["limits[0].client_id: must be a text of 1 to 255 bytes", limits({ client_id: "a\nb", max_sessions: 1 })],
    ["limits[0].client_id: must be a text of 1 to 255 bytes", limits({ client_id: "ü".repeat(128), max_sessions: 1 })],
    ...[
      [{}, { client_id: "a" }],
      [{ client_id: "a" }, { client_id: "a", client_kind: "TV", scope: "SUBJECT" }],
      [{ client_kind: "TV" }, { client_kind: "TV" }],
    ].map((pair): [string, string] => [
      "limits[2]: never counts, because limits[1] matches first",
      limits(...[{ client_id: "b" }, ...pair].map((entry) => ({ ...entry, max_sessions: 1 }))),
    ]),
    ["limits[0]: needs scope, since", limits({ client_id: "a", client_kind: "TV", max_sessions: 1 })],
  ])("%s", (fault, text) => {
    const parse = () => parseSessionPolicies(text);
    expect(parse).toThrow(SettingsFileFault);
    expect(parse).toThrow(fault);
    expect(parse).not.toThrow(SECRET);
  });
});

const ON = { oauthEndpoints: true };

test("clients that exchange tokens need the endpoints of OAuth", async () => {
  const path = join(scratch(), "policies.json");
  writeFileSync(path, exchanges(EXCHANGE));
  expect((await loadSessionPolicies(path, ON)).current.tokenExchange).toHaveLength(1);
  const off = loadSessionPolicies(path, { oauthEndpoints: false });
  await expect(off).rejects.toThrow(`${path}: token_exchange: needs OAUTH_ENDPOINTS=on`);
});

test("a file that others can change is refused", async () => {
  const path = join(scratch(), "policies.json");
  writeFileSync(path, limits({ max_sessions: 1 }));
  expect((await loadSessionPolicies(path, ON)).current.limits).toHaveLength(1);
  chmodSync(path, 0o666);
  await expect(loadSessionPolicies(path, ON)).rejects.toThrow(`${path}: has mode 666`);
});
